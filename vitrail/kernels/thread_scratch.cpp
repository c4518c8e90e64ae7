#include "vitrail/kernels/thread_scratch.h"

#include <new>

#include "hwy/aligned_allocator.h"

namespace vitrail::kernels {

float* thread_scratch(int64_t floats) {
  thread_local hwy::AlignedFreeUniquePtr<float[]> memory;
  thread_local int64_t size = 0;
  if (size < floats) {
    memory.reset();
    size = 0;
    memory = hwy::AllocateAligned<float>(static_cast<size_t>(floats));
    if (!memory) throw std::bad_alloc();
    size = floats;
  }
  return memory.get();
}

}  // namespace vitrail::kernels
