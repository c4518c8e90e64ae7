// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// The calling thread's memory to work in, 64-byte aligned, which grows and stays: nothing is allocated once every shape
// has been seen.  One user at a time: what a kernel gets is valid until the next call on the same thread.
float* thread_scratch(int64_t floats);

}  // namespace vitrail::kernels
