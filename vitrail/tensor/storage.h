// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that tensors share, and where they come from.
#include <cstddef>
#include <cstdint>
#include <memory>

namespace vitrail {

// Where a tensor's data is.  meta: nowhere; shapes and strides only.
enum class Device : uint8_t { cpu, meta };
const char* name_of(Device device);

// Hands out memory for CPU storages.  Thread-safe.  Alignment is kAlignment.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;  // a cache line, and one AVX-512 vector
  virtual ~Allocator() = default;
  virtual void* allocate(size_t bytes) = 0;  // throws std::bad_alloc
  virtual void deallocate(void* data, size_t bytes) noexcept = 0;
};
Allocator&
default_allocator();  // aligned malloc, or what keeps blocks while a CachingAllocatorScope (caching_allocator.h) lives

// A block of memory with one owner and any number of tensors that view it.
class Storage {
 public:
  static std::shared_ptr<Storage> allocate(size_t bytes, Allocator& allocator = default_allocator());  // not cleared
  static std::shared_ptr<Storage> meta(size_t bytes);  // no memory behind it

  // Memory that something else owns (a mapped file).  Read-only use is the caller's promise.  `owner` lives as long
  // as the storage; `on_release`, if given, is called by release().
  using Release = void (*)(void* owner, const std::byte* data, size_t bytes);
  static std::shared_ptr<Storage> borrow(const std::byte* data, size_t bytes, std::shared_ptr<void> owner,
                                         Release on_release = nullptr);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }  // null on the meta device
  size_t bytes() const { return bytes_; }
  bool is_borrowed() const { return data_ != nullptr && allocator_ == nullptr; }  // not to be written to
  Device device() const { return data_ == nullptr && bytes_ > 0 ? Device::meta : Device::cpu; }

  // Gives the memory back and turns the storage into a meta one: what packs a weight calls this on the original.
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
