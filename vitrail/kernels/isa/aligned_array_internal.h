// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays that begin where vectors and cache lines do (at multiples of kCacheLinePairBytes), not initialised, at least
// one element long.  They throw std::bad_alloc.
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

// A part of a block that it shares with others allocated about then; the last of them gives the block back.  The packed
// weights of a small model are each too small for huge pages, and touching 22 MB (ViT-Ti) for the first time in pages
// of 4 kB was a sixth of a cold start: 58.8 ms with them, 48.9 without (Zen 3, best of 40).
std::shared_ptr<void> share_block(size_t bytes);

template <class T>
AlignedArray<T> weight_array(int64_t count) {
  const std::shared_ptr<void> part = share_block(static_cast<size_t>(std::max<int64_t>(1, count)) * sizeof(T));
  return AlignedArray<T>(part, static_cast<T*>(part.get()));
}

// The same, of zeros.
template <class T>
AlignedArray<T> zero_weights(int64_t count) {
  auto memory = weight_array<T>(count);
  std::fill_n(memory.get(), count, T(0));
  return memory;
}

}  // namespace vitrail::kernels
