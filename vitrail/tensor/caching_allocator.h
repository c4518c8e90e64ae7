// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/storage.h"

namespace vitrail {

// While one of these lives, large blocks that tensors give back are kept and handed out again, for every thread.  A
// training step allocates the same sizes each time: from the system each would come as fresh pages to be cleared (a
// fifth of a step of the 192-wide CIFAR model on two cores of Zen 3).  What is kept goes back with the last one.
class CachingAllocatorScope {
 public:
  CachingAllocatorScope();
  ~CachingAllocatorScope();
  CachingAllocatorScope(const CachingAllocatorScope&) = delete;
  CachingAllocatorScope& operator=(const CachingAllocatorScope&) = delete;

  static size_t cached_bytes();  // kept and not in use
};

// What default_allocator() is while CachingAllocatorScope is alive, else null.
Allocator* caching_allocator();

}  // namespace vitrail
