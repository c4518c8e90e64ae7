// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the last, incomplete vector of a row: nothing outside [p, p + n) is read or written.
// Included once per target: Highway toggles the include guard.
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#if defined(VITRAIL_KERNELS_VECTOR_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_VECTOR_MEMORY_INL_H_
#undef VITRAIL_KERNELS_VECTOR_MEMORY_INL_H_
#else
#define VITRAIL_KERNELS_VECTOR_MEMORY_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// AVX2 and AVX-512 mask memory accesses in hardware.  Without that, Highway's MaskedLoad reads the complete vector.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr bool kMaskedMemory = true;
#else
constexpr bool kMaskedMemory = false;
#endif

// p[0, n) for n < lanes; the other lanes are 0.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const float* p, int64_t n) {
  if constexpr (kMaskedMemory) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
  } else {
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(float));
    return hn::Load(d, buffer);
  }
}

// p[0, n) = the first n < lanes lanes of v.
template <class D>
HWY_INLINE void store_first(D d, hn::Vec<D> v, float* p, int64_t n) {
  if constexpr (kMaskedMemory) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, p);
  } else {
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(float));
  }
}

// How for_each_vector() reads and writes a complete vector, and the first `count` elements of one.
template <class D>
struct CompleteVector {
  HWY_INLINE hn::Vec<D> load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE void store(hn::Vec<D> v, float* p) const { hn::StoreU(v, D(), p); }
};
template <class D>
struct FirstElements {
  int64_t count;
  HWY_INLINE hn::Vec<D> load(const float* p) const { return load_first(D(), p, count); }
  HWY_INLINE void store(hn::Vec<D> v, float* p) const { store_first(D(), v, p, count); }
};

// Calls body(i, memory) for the vectors of [0, n), which begin at i = 0, lanes, 2 · lanes, ….  memory.load(p + i) gives
// zeros from n on, and memory.store(v, p + i) stops before n.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t n, Body&& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, CompleteVector<D>());
  if (i < n) body(i, FirstElements<D>{n - i});
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
