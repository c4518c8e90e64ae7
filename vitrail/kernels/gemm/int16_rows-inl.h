// SPDX-License-Identifier: Apache-2.0
// fp32 to whole numbers of 16 bits with a step for each row (int16_quantization_internal.h), in vectors: as the
// products in 16 bits and attention's scores take them. Included once for each target (no #pragma once: Highway toggles
// the guard).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "vitrail/kernels/gemm/int16_quantization_internal.h"
#include "vitrail/kernels/isa/vector_memory-inl.h"

#if defined(VITRAIL_KERNELS_INT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_INT16_INL_H_
#undef VITRAIL_KERNELS_INT16_INL_H_
#else
#define VITRAIL_KERNELS_INT16_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float length_of_row(const float* x, int64_t n) {
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
  double exact = 0;  // fp32 holds no square of 1e20 or 1e-20
  for (i = 0; i < n; ++i) exact += double{x[i]} * x[i];
  return static_cast<float>(std::sqrt(exact));
}

// The step for a row x [n] with most = max_int16_scale_multiple(n); NaN when its length is not finite.
HWY_INLINE float int16_step(const float* x, int64_t n, float most) {
  const float length = length_of_row(x, n);
  return length <= std::numeric_limits<float>::max() ? length / most : std::numeric_limits<float>::quiet_NaN();
}

// x [n] → numbers · step.
HWY_INLINE void round_by_step(const float* x, int64_t n, float step, int16_t* numbers) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float inverse = 1 / step;
  const auto factor = hn::Set(d, std::isfinite(inverse) ? inverse : 0.0f);
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);  // of quads, by vector
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto low = hn::Mul(hn::LoadU(d, x + i), factor), high = hn::Mul(hn::LoadU(d, x + i + lanes), factor);
    const __m512i packed = _mm512_packs_epi32(_mm512_cvtps_epi32(low.raw), _mm512_cvtps_epi32(high.raw));
    _mm512_storeu_si512(numbers + i, _mm512_permutexvar_epi64(order, packed));
  }
#endif
  auto number = [&](auto v) HWY_ATTR { return hn::DemoteTo(d16, hn::NearestInt(hn::Mul(v, factor))); };
  for (; i + lanes <= n; i += lanes) hn::StoreU(number(hn::LoadU(d, x + i)), d16, numbers + i);
  if (i < n) {
    HWY_ALIGN int16_t last[HWY_MAX_BYTES];
    hn::StoreU(number(load_first(d, x + i, n - i)), d16, last);
    std::copy_n(last, n - i, numbers + i);
  }
}

// x [n] → numbers; gives their step.
HWY_INLINE float round_to_int16(const float* x, int64_t n, float most, int16_t* numbers) {
  const float step = int16_step(x, n, most);
  round_by_step(x, n, step, numbers);
  return step;
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();
#endif
