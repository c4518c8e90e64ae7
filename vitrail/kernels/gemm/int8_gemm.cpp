// SPDX-License-Identifier: Apache-2.0
// PackedLinear in int8 (quantized_gemm_internal.h): weights symmetric per output channel, activations asymmetric per
// row.  AVX-512 VNNI multiplies and adds a K group exactly in one instruction (avx512_microkernels.cpp).  Without VNNI,
// pairs are added in 16 bits first.  Weights that could saturate there, such as those of a model that was quantised for
// VNNI, take a slower, exact microkernel (int8_microkernel.cpp).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/int8_gemm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/isa/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rounds to nearest, ties to even.  v must be finite and in int32's range: Highway's NearestInt handles the others too,
// in four more instructions on AVX-512.
template <class D, class V>
HWY_INLINE hn::Vec<D> round_to_int32(D, V v) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<D>{_mm512_cvtps_epi32(v.raw)};
#else
  return hn::NearestInt(v);
#endif
}

// to [4 · lanes] = a, b, c, e clamped to [0, 255].
template <class D>
HWY_INLINE void store_uint8(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e, uint8_t* to) {
#if HWY_TARGET == HWY_AVX3
  const __m512i ab = _mm512_packus_epi32(a.raw, b.raw), ce = _mm512_packus_epi32(c.raw, e.raw);
  // The pack instructions work within 128-bit lanes: restores the order of the 32-bit elements.
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, ce)));
#else
  const hn::Rebind<uint8_t, D> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::StoreU(hn::DemoteTo(d8, a), d8, to);
  hn::StoreU(hn::DemoteTo(d8, b), d8, to + lanes);
  hn::StoreU(hn::DemoteTo(d8, c), d8, to + 2 * lanes);
  hn::StoreU(hn::DemoteTo(d8, e), d8, to + 3 * lanes);
#endif
}

// The quantiser of a row by its minimum and maximum.  0 · x is NaN for a value that is not finite, which makes the
// scale NaN, and so the row's outputs.
HWY_INLINE RowQuantizer quantizer_of(const float* x, int64_t in) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto min = zero, max = zero, poison = zero;
  auto add = [&](auto v) HWY_ATTR {
    min = hn::Min(min, v);
    max = hn::Max(max, v);
    poison = hn::MulAdd(v, zero, poison);
  };
  const int64_t complete = in / lanes * lanes;
  for (int64_t c = 0; c < complete; c += lanes) add(hn::LoadU(d, x + c));
  if (complete < in) add(load_first(d, x + complete, in - complete));
  return row_quantizer(hn::GetLane(hn::MinOfLanes(d, min)),
                       hn::GetLane(hn::MaxOfLanes(d, max)) + hn::GetLane(hn::SumOfLanes(d, poison)));
}

QuantizationParams quantize_uint8_row(const float* x, int64_t in, float /*max_norm*/, int32_t* row) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* const values = reinterpret_cast<uint8_t*>(row);
  const RowQuantizer quantizer = quantizer_of(x, in);
  const auto inverse_scale = hn::Set(d, quantizer.inverse_scale);
  const auto zero_point = hn::Set(d32, quantizer.params.zero_point);
  auto quantize = [&](auto v) HWY_ATTR { return hn::Add(round_to_int32(d32, hn::Mul(v, inverse_scale)), zero_point); };
  int64_t c = 0;
  for (; c + 4 * lanes <= in; c += 4 * lanes) {
    store_uint8(d32, quantize(hn::LoadU(d, x + c)), quantize(hn::LoadU(d, x + c + lanes)),
                quantize(hn::LoadU(d, x + c + 2 * lanes)), quantize(hn::LoadU(d, x + c + 3 * lanes)), values + c);
  }
  for (; c + lanes <= in; c += lanes) hn::StoreU(hn::DemoteTo(d8, quantize(hn::LoadU(d, x + c))), d8, values + c);
  if (c < in) {
    HWY_ALIGN uint8_t last[HWY_MAX_BYTES];
    hn::Store(hn::DemoteTo(d8, quantize(load_first(d, x + c, in - c))), d8, last);
    std::copy_n(last, in - c, values + c);
  }
  return quantizer.params;
}

// The low term (activation_quantization_internal.h).
QuantizationParams quantize_low_term(const float* x, int64_t in, QuantizationParams high, const int32_t* high_row,
                                     int32_t* low_row) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const high_values = reinterpret_cast<const uint8_t*>(high_row);
  auto* const low_values = reinterpret_cast<uint8_t*>(low_row);
  const LowTermQuantizer quantizer = low_term_quantizer(high);
  const auto high_zero = hn::Set(d32, high.zero_point), low_zero = hn::Set(d32, quantizer.params.zero_point);
  const auto inverse_scale = hn::Set(d, quantizer.inverse_high_scale), levels = hn::Set(d, LowTermQuantizer::kLevels);
  int64_t i = 0;
  for (; i + lanes <= in; i += lanes) {
    const auto rounded = hn::ConvertTo(d, hn::Sub(hn::PromoteTo(d32, hn::LoadU(d8, high_values + i)), high_zero));
    const auto error = hn::Sub(hn::Mul(hn::LoadU(d, x + i), inverse_scale), rounded);
    const auto low = hn::Add(round_to_int32(d32, hn::Mul(error, levels)), low_zero);
    hn::StoreU(hn::DemoteTo(d8, low), d8, low_values + i);
  }
  for (; i < in; ++i) low_values[i] = low_term_value(x[i], high_values[i], quantizer);
  return quantizer.params;
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(quantize_uint8_row, nullptr);
VITRAIL_EXPORT(quantize_low_term, nullptr);

// Whether vpmaddubsw could saturate for some activations.
bool can_saturate(const int8_t* values, int64_t in) {
  for (int64_t i = 0; i + 1 < in; i += 2) {
    if (std::abs(values[i] + values[i + 1]) > kSaturationLimit) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<PackedGemm> make_int8_gemm(const Int8WeightSource& weight, const float* bias, int64_t out, int64_t in,
                                           DotMicrokernel microkernel, const PanelLayout& panel,
                                           const RowBlocking& row_blocking) {
  std::atomic<bool> saturates = false;
  const QuantizedFormat format{.values_per_group = 4,
                               .panel = panel,
                               .microkernel = microkernel,
                               .quantize_row = &VITRAIL_DISPATCH(quantize_uint8_row),
                               .quantize_low_term = &VITRAIL_DISPATCH(quantize_low_term),
                               .row_blocking = row_blocking};
  const auto quantize_channel = [&](int64_t c, int32_t* groups) -> QuantizedChannel {
    auto* const values = reinterpret_cast<int8_t*>(groups);
    const float scale = weight.row(c, in, &quantize_weight_row, values);
    if (can_saturate(values, in)) saturates = true;
    return {.scale = scale, .compensation = std::accumulate(values, values + in, 0)};
  };
  auto gemm = std::make_unique<QuantizedGemm>(format, bias, out, in, quantize_channel);
  if (saturates && microkernel == int8_microkernel()) gemm->use(widening_int8_microkernel());
  return gemm;
}

}  // namespace vitrail::kernels
#endif
