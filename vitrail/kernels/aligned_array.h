#pragma once
// Arrays that begin where vectors and cache lines do.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace vitrail::kernels {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], Free>;

// count elements, not initialised, at a multiple of 128 bytes (two lines, which processors fetch together).  Throws
// std::bad_alloc.
template <class T>
AlignedArray<T> aligned_array(int64_t count) {
  constexpr size_t kAlignment = 128;
  const size_t bytes = static_cast<size_t>(std::max<int64_t>(1, count)) * sizeof(T);
  void* const memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!memory) throw std::bad_alloc();
  return AlignedArray<T>(static_cast<T*>(memory));
}

}  // namespace vitrail::kernels
