// SPDX-License-Identifier: Apache-2.0
// The int8 dot-product microkernels for processors without VNNI.
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/int8_microkernel.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// accumulator + Σ aᵢ bᵢ over the four values of each K group, a unsigned and b signed.  On x86, unless `widen`, pairs
// a₀ b₀ + a₁ b₁ are added in 16 bits, which saturates (vpmaddubsw).
template <bool widen>
struct Int8Arithmetic {
  using D = hn::ScalableTag<int32_t>;

  template <class V>
  HWY_INLINE static V multiply_add([[maybe_unused]] D d, V a, V b, V accumulator) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    if constexpr (widen) {
      const hn::Repartition<int16_t, D> d16;
      const hn::Repartition<uint16_t, D> u16;
      const auto pairs = hn::BitCast(d16, b);
      auto unused = hn::Zero(d);
      const V even = hn::ReorderWidenMulAccumulate(d, hn::And(hn::BitCast(d16, a), hn::Set(d16, 255)),
                                                   hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), accumulator, unused);
      return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(u16, a))),
                                           hn::ShiftRight<8>(pairs), even, unused);
    }
#endif
#if HWY_TARGET == HWY_SSE4
    return hn::Add(accumulator, V{_mm_madd_epi16(_mm_maddubs_epi16(a.raw, b.raw), _mm_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX2
    return hn::Add(accumulator, V{_mm256_madd_epi16(_mm256_maddubs_epi16(a.raw, b.raw), _mm256_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX3
    return hn::Add(accumulator, V{_mm512_madd_epi16(_mm512_maddubs_epi16(a.raw, b.raw), _mm512_set1_epi16(1))});
#elif HWY_TARGET == HWY_NEON
    // Σ a b = Σ (a − 128) b + 128 Σ b, where pairs of either sum fit 16 bits: 2 · 128 · 127 < 2¹⁵.
    const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_s32(a.raw), vdupq_n_u8(128)));
    const int8x16_t w = vreinterpretq_s8_s32(b.raw);
    const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w)), vmull_high_s8(x, w));
    return V{vpadalq_s16(vpadalq_s16(accumulator.raw, pairs), vshlq_n_s16(vpaddlq_s8(w), 7))};
#else
    const auto low = hn::Set(d, 255);
    accumulator = hn::Add(accumulator, hn::Mul(hn::And(a, low), hn::ShiftRight<24>(hn::ShiftLeft<24>(b))));
    accumulator =
        hn::Add(accumulator, hn::Mul(hn::And(hn::ShiftRight<8>(a), low), hn::ShiftRight<24>(hn::ShiftLeft<16>(b))));
    accumulator =
        hn::Add(accumulator, hn::Mul(hn::And(hn::ShiftRight<16>(a), low), hn::ShiftRight<24>(hn::ShiftLeft<8>(b))));
    return hn::Add(accumulator, hn::Mul(hn::And(hn::ShiftRight<24>(a), low), hn::ShiftRight<24>(b)));
#endif
  }
};

template <bool widen>
HWY_INLINE void int8_panel_dot(const DotMicrokernelArgs& args) {
  auto* const c = static_cast<int32_t*>(args.accumulators);
  const int64_t ldc = args.ld_accumulators;
  const auto multiply = [&](auto accumulators) HWY_ATTR {
    multiply_panel_by<Int8Arithmetic<widen>, false, false>(args.x, args.ldx, args.panel, args.k_groups, args.rows,
                                                           accumulators, args.next);
  };
  if (args.accumulate) {
    multiply(StoredAccumulators<true, int32_t>{c, ldc});
  } else {
    multiply(StoredAccumulators<false, int32_t>{c, ldc});
  }
}

void int8_dot(const DotMicrokernelArgs& args) { int8_panel_dot<false>(args); }
void widening_int8_dot(const DotMicrokernelArgs& args) { int8_panel_dot<true>(args); }

int64_t columns_of_int8_panel() { return panel_columns(); }

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(int8_dot, nullptr);
VITRAIL_EXPORT(widening_int8_dot, nullptr);
VITRAIL_EXPORT(columns_of_int8_panel, nullptr);

}  // namespace

DotMicrokernel int8_microkernel() { return &VITRAIL_DISPATCH(int8_dot); }
DotMicrokernel widening_int8_microkernel() { return &VITRAIL_DISPATCH(widening_int8_dot); }
int64_t int8_panel_columns() { return VITRAIL_DISPATCH(columns_of_int8_panel)(); }

}  // namespace vitrail::kernels
#endif
