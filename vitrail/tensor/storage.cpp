// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/storage.h"

#include <cstdlib>

#include "vitrail/base/aligned_memory_internal.h"
#include "vitrail/tensor/caching_allocator.h"

namespace vitrail {
namespace {

class MallocAllocator : public Allocator {
 public:
  void* allocate(size_t bytes) override { return allocate_aligned(bytes); }
  void deallocate(void* data, size_t) noexcept override { std::free(data); }
};

}  // namespace

const char* name_of(Device device) {
  switch (device) {
    case Device::cpu:
      return "cpu";
    case Device::meta:
      return "meta";
  }
  return nullptr;
}

Allocator& default_allocator() {
  static MallocAllocator& allocator = *new MallocAllocator;  // tensors of static objects are destroyed late
  Allocator* const reusing = caching_allocator();
  return reusing ? *reusing : allocator;
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes, Allocator& allocator) {
  std::shared_ptr<Storage> storage(new Storage);
  if (bytes > 0) storage->data_ = static_cast<std::byte*>(allocator.allocate(bytes));
  storage->bytes_ = bytes;
  storage->allocator_ = &allocator;
  return storage;
}

std::shared_ptr<Storage> Storage::meta(size_t bytes) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  return storage;
}

std::shared_ptr<Storage> Storage::borrow(const std::byte* data, size_t bytes, std::shared_ptr<void> owner,
                                         Release on_release) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = const_cast<std::byte*>(data);
  storage->bytes_ = bytes;
  storage->owner_ = std::move(owner);
  storage->on_release_ = on_release;
  return storage;
}

Storage::~Storage() { release(); }

void Storage::release() {
  if (data_ == nullptr) return;
  if (allocator_ != nullptr) {
    allocator_->deallocate(data_, bytes_);
  } else if (on_release_ != nullptr) {
    on_release_(owner_.get(), data_, bytes_);
  }
  data_ = nullptr;
  owner_.reset();
}

}  // namespace vitrail
