// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of tensors: devices, allocators, and storages that several tensors share.
#include <cstddef>
#include <cstdint>
#include <memory>

namespace vitrail {

// The device of a tensor's data.  A meta tensor has shape, strides and dtype but no data.
enum class Device : uint8_t { cpu, meta };
const char* name_of(Device device);

// Allocates memory for CPU storages.  Thread-safe.  Blocks are aligned to kAlignment bytes.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;  // a cache line and an AVX-512 vector
  virtual ~Allocator() = default;
  virtual void* allocate(size_t bytes) = 0;  // throws std::bad_alloc
  virtual void deallocate(void* data, size_t bytes) noexcept = 0;
};
// Aligned malloc, or the caching allocator while a CachingAllocatorScope (caching_allocator.h) exists.
Allocator& default_allocator();

// A block of memory that any number of tensors view.
class Storage {
 public:
  static std::shared_ptr<Storage> allocate(size_t bytes, Allocator& allocator = default_allocator());  // uninitialised
  static std::shared_ptr<Storage> meta(size_t bytes);                                                  // without memory

  // Memory with another owner, such as a mapped file.  The caller must not write to it.  The storage keeps `owner`
  // alive; release() calls `on_release` if given.
  using Release = void (*)(void* owner, const std::byte* data, size_t bytes);
  static std::shared_ptr<Storage> borrow(const std::byte* data, size_t bytes, std::shared_ptr<void> owner,
                                         Release on_release = nullptr);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }  // null on the meta device
  size_t bytes() const { return bytes_; }
  bool is_borrowed() const { return data_ != nullptr && allocator_ == nullptr; }  // must not be written to
  Device device() const { return data_ == nullptr && bytes_ > 0 ? Device::meta : Device::cpu; }

  // Frees the memory and turns the storage into a meta one.  Weight packing calls it for the original weight.
  void release();

 private:
  Storage() = default;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Allocator* allocator_ = nullptr;
  std::shared_ptr<void> owner_;
  Release on_release_ = nullptr;
};

}  // namespace vitrail
