#include "vitrail/kernels/thread_scratch.h"

#include "vitrail/kernels/aligned_array.h"

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
