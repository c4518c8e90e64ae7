// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/thread_scratch_internal.h"

#include "vitrail/kernels/isa/aligned_array_internal.h"

namespace vitrail::kernels {

float* thread_scratch(int64_t floats) {
  thread_local AlignedArray<float> memory;
  thread_local int64_t size = 0;
  if (size < floats) {
    memory.reset();
    size = 0;
    memory = aligned_array<float>(floats);
    size = floats;
  }
  return memory.get();
}

}  // namespace vitrail::kernels
