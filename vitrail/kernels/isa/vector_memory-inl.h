// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the last, incomplete vector of a row: nothing outside [p, p + n) is touched.
// Included once for each target (no #pragma once: Highway toggles the guard).
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

// AVX2 and AVX-512 mask memory accesses in hardware; before them Highway's MaskedLoad reads the whole vector.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr bool kMaskedMemory = true;
#else
constexpr bool kMaskedMemory = false;
#endif

// The first n < lanes elements; the others are 0.
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

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
