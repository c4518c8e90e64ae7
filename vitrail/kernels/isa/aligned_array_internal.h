// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays for aligned vector loads: they begin at a multiple of kCacheLinePairBytes, have at least one element and are
// not initialised unless a function says so.  All throw std::bad_alloc.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "vitrail/base/aligned_memory_internal.h"

namespace vitrail::kernels {

template <class T>
using AlignedArray = std::shared_ptr<T[]>;

template <class T>
AlignedArray<T> aligned_array(int64_t count) {
  return AlignedArray<T>(static_cast<T*>(allocate_aligned(static_cast<size_t>(count) * sizeof(T))), std::free);
}

// Part of a block that successive allocations share; the block is freed with its last part.  The packed weights of a
// small model are each smaller than a huge page.  Together they get huge pages, and a cold start has fewer page faults.
std::shared_ptr<void> allocate_in_shared_block(size_t bytes);

// An array in a shared block, for weights that live as long as their model.
template <class T>
AlignedArray<T> weight_array(int64_t count) {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(1, count)) * sizeof(T);
  const std::shared_ptr<void> part = allocate_in_shared_block(bytes);
  return AlignedArray<T>(part, static_cast<T*>(part.get()));
}

// weight_array, filled with zeros.
template <class T>
AlignedArray<T> zero_weights(int64_t count) {
  auto memory = weight_array<T>(count);
  std::fill_n(memory.get(), count, T(0));
  return memory;
}

}  // namespace vitrail::kernels
