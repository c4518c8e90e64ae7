// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/caching_allocator.h"

#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "vitrail/base/aligned_memory_internal.h"
#include "vitrail/base/round_up_internal.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace vitrail {
namespace {

constexpr size_t kMinCached = 64 << 10;  // bytes; malloc serves smaller blocks from its arenas without a system call

// Rounds up to a multiple of an eighth of the next lower power of two, so that a block fits similar sizes.
size_t rounded(size_t bytes) {
  const size_t granularity = std::bit_floor(bytes) / 8;
  return round_up(bytes, granularity);
}

class CachingAllocator : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    if (bytes < kMinCached) return allocate_aligned(bytes);
    const size_t size = rounded(bytes);
    {
      const std::lock_guard lock(mutex_);
      const auto found = free_blocks_.find(size);
      if (found != free_blocks_.end() && !found->second.empty()) {
        void* const data = found->second.back();
        found->second.pop_back();
        cached_bytes_ -= size;
        return data;
      }
    }
    return allocate_aligned(size);
  }

  void deallocate(void* data, size_t bytes) noexcept override {
    if (bytes < kMinCached || !keep(data, rounded(bytes))) std::free(data);
  }

  void enter() { ++users_; }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    for (const auto& [size, blocks] : free_blocks_) {
      for (void* const block : blocks) std::free(block);
    }
    free_blocks_.clear();
    cached_bytes_ = 0;
  }
  bool active() const { return users_ > 0; }
  size_t cached_bytes() {
    const std::lock_guard lock(mutex_);
    return cached_bytes_;
  }

 private:
  // Keeps a block for the next allocation of its size.  False: the caller must free it.
  bool keep(void* data, size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    if (users_ == 0) return false;
    try {
      free_blocks_[size].push_back(data);
    } catch (const std::bad_alloc&) {  // no memory for the list
      return false;
    }
    cached_bytes_ += size;
    return true;
  }

  std::atomic<int> users_ = 0;
  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_blocks_;
  size_t cached_bytes_ = 0;
};

// Never destroyed, because storages of static tensors may outlive other static objects.
CachingAllocator& instance() {
  static CachingAllocator& allocator = *new CachingAllocator;
  return allocator;
}

// oneDNN takes the scratch memory of each GEMM from malloc.  By default glibc may return it to the kernel every time,
// which then clears its pages again.
void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace

CachingAllocatorScope::CachingAllocatorScope() {
  keep_freed_memory();
  instance().enter();
}
CachingAllocatorScope::~CachingAllocatorScope() { instance().leave(); }
size_t CachingAllocatorScope::cached_bytes() { return instance().cached_bytes(); }

Allocator* caching_allocator() { return instance().active() ? &instance() : nullptr; }

}  // namespace vitrail
