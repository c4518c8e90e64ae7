// SPDX-License-Identifier: Apache-2.0
// Rows of fp32 to int16 with a scale per row (int16_quantization_internal.h), for the int16 GEMM and for attention's
// scores.  Included once for each target (no #pragma once: Highway toggles the guard).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "vitrail/kernels/gemm/int16_quantization_internal.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_INT16_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_INT16_ROWS_INL_H_
#undef VITRAIL_KERNELS_INT16_ROWS_INL_H_
#else
#define VITRAIL_KERNELS_INT16_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ‖x‖₂ of x [n].
HWY_INLINE float l2_norm(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = even;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  for (; i < n; i += lanes) {
    const auto a = i + lanes <= n ? hn::LoadU(d, x + i) : load_first(d, x + i, n - i);
    even = hn::MulAdd(a, a, even);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  if (sum > 1e-30f && sum < 1e38f) return std::sqrt(sum);
  double exact = 0;  // squares of such values overflow or underflow fp32
  for (i = 0; i < n; ++i) exact += double{x[i]} * x[i];
  return static_cast<float>(std::sqrt(exact));
}

// The scale for x [n] with max_norm = max_int16_norm(n); NaN if x has a value that is not finite.
HWY_INLINE float int16_scale(const float* x, int64_t n, float max_norm) {
  const float norm = l2_norm(x, n);
  return norm <= std::numeric_limits<float>::max() ? norm / max_norm : std::numeric_limits<float>::quiet_NaN();
}

// x [n] → values [n] = round(x / scale).
HWY_INLINE void quantize_int16(const float* x, int64_t n, float scale, int16_t* values) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float inverse = 1 / scale;
  const auto factor = hn::Set(d, std::isfinite(inverse) ? inverse : 0.0f);
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  // The pack instruction works within 128-bit lanes: restores the order of the 64-bit elements.
  const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto low = hn::Mul(hn::LoadU(d, x + i), factor), high = hn::Mul(hn::LoadU(d, x + i + lanes), factor);
    const __m512i packed = _mm512_packs_epi32(_mm512_cvtps_epi32(low.raw), _mm512_cvtps_epi32(high.raw));
    _mm512_storeu_si512(values + i, _mm512_permutexvar_epi64(order, packed));
  }
#endif
  auto quantize = [&](auto v) HWY_ATTR { return hn::DemoteTo(d16, hn::NearestInt(hn::Mul(v, factor))); };
  for (; i + lanes <= n; i += lanes) hn::StoreU(quantize(hn::LoadU(d, x + i)), d16, values + i);
  if (i < n) {
    HWY_ALIGN int16_t last[HWY_MAX_BYTES];
    hn::StoreU(quantize(load_first(d, x + i, n - i)), d16, last);
    std::copy_n(last, n - i, values + i);
  }
}

// x [n] → values [n]; returns their scale.
HWY_INLINE float quantize_int16_row(const float* x, int64_t n, float max_norm, int16_t* values) {
  const float scale = int16_scale(x, n, max_norm);
  quantize_int16(x, n, scale, values);
  return scale;
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
