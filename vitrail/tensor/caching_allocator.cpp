// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/caching_allocator.h"

#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "vitrail/base/aligned_memory.h"

namespace vitrail {
namespace {

constexpr size_t kSmallest = 64 << 10;  // what is smaller comes from malloc's own arenas without a system call

// Sizes are rounded up to eighths of a power of two, so that a block serves its neighbours in size too.
size_t rounded(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

class CachingAllocator : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    if (bytes < kSmallest) return allocate_aligned(bytes);
    const size_t size = rounded(bytes);
    {
      const std::lock_guard lock(mutex_);
      const auto found = idle_.find(size);
      if (found != idle_.end() && !found->second.empty()) {
        void* const data = found->second.back();
        found->second.pop_back();
        idle_bytes_ -= size;
        return data;
      }
    }
    return allocate_aligned(size);
  }

  void deallocate(void* data, size_t bytes) noexcept override {
    if (bytes >= kSmallest && users_ > 0) {
      const std::lock_guard lock(mutex_);
      const size_t size = rounded(bytes);
      try {
        idle_[size].push_back(data);
        idle_bytes_ += size;
        return;
      } catch (const std::bad_alloc&) {  // no room for the list: the block itself goes back
      }
    }
    std::free(data);
  }

  void enter() { ++users_; }
  void leave() {
    if (--users_ > 0) return;
    const std::lock_guard lock(mutex_);
    for (const auto& [size, blocks] : idle_) {
      for (void* const block : blocks) std::free(block);
    }
    idle_.clear();
    idle_bytes_ = 0;
  }
  bool active() const { return users_ > 0; }
  size_t cached_bytes() {
    const std::lock_guard lock(mutex_);
    return idle_bytes_;
  }

 private:
  std::atomic<int> users_ = 0;
  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> idle_;
  size_t idle_bytes_ = 0;
};

// Never destroyed: storages of static tensors may outlive any other static object.
CachingAllocator& instance() {
  static CachingAllocator& allocator = *new CachingAllocator;
  return allocator;
}

}  // namespace

CachingAllocatorScope::CachingAllocatorScope() { instance().enter(); }
CachingAllocatorScope::~CachingAllocatorScope() { instance().leave(); }
size_t CachingAllocatorScope::cached_bytes() { return instance().cached_bytes(); }

Allocator* caching_allocator() { return instance().active() ? &instance() : nullptr; }

}  // namespace vitrail
