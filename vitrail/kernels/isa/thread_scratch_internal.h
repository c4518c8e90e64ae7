// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// Scratch memory of the calling thread: `floats` elements, aligned to kCacheLinePairBytes, valid until the thread's
// next call. It only grows, so a thread that has seen every shape allocates nothing more.  Throws std::bad_alloc.
float* thread_scratch(int64_t floats);

}  // namespace vitrail::kernels
