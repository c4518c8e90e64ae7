// SPDX-License-Identifier: Apache-2.0
#pragma once
// A caching allocator for training, as PyTorch has for GPUs: freed blocks are reused instead of returned to the system.
#include "vitrail/tensor/storage.h"

namespace vitrail {

// While an object of this class exists, large blocks freed by tensors of any thread are cached and reused.  A training
// step allocates the same sizes as the step before; without the cache the system would map and clear new pages each
// time.  The cache is freed with the last object.
class CachingAllocatorScope {
 public:
  CachingAllocatorScope();
  ~CachingAllocatorScope();
  CachingAllocatorScope(const CachingAllocatorScope&) = delete;
  CachingAllocatorScope& operator=(const CachingAllocatorScope&) = delete;

  static size_t cached_bytes();  // size of the cached blocks that are not in use
};

// The caching allocator while a CachingAllocatorScope exists, else null.  default_allocator() uses it.
Allocator* caching_allocator();

}  // namespace vitrail
