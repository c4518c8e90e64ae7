// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocation aligned to cache lines, and to huge pages for large blocks.
#include <cstddef>

namespace vitrail {

constexpr size_t kCacheLinePairBytes = 128;  // two cache lines, because processors prefetch lines in pairs
constexpr size_t kHugePageBytes = size_t{2} << 20;

// Allocates at least `bytes` at a multiple of kCacheLinePairBytes, uninitialised.  std::free() releases the block.
// A block of kHugePageBytes or more starts at a multiple of that size, and the system is asked to back it with huge
// pages: the first touch then costs one page fault per 2 MiB instead of one per 4 KiB.  Throws std::bad_alloc.
void* allocate_aligned(size_t bytes);

}  // namespace vitrail
