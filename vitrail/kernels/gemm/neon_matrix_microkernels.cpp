// SPDX-License-Identifier: Apache-2.0
// The dot-product microkernels of 64-bit ARM's matrix multiplications, USMMLA (i8mm) and BFMMLA (bf16): one instruction
// multiplies two adjacent K groups of two rows by those of two columns, and adds.  Written in intrinsics because
// Highway 1.0 has no such operations.
#include <algorithm>
#include <stdexcept>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/register_tile_internal.h"
#include "vitrail/kernels/isa/arm_extensions_internal.h"

#if VITRAIL_ARM_EXTENSIONS
#include <arm_neon.h>

// For lambdas, which HWY_PUSH_ATTRIBUTES does not reach.  The compiler emits neither extension's instructions by
// itself, so the int8 microkernel runs on processors without bf16.
#define VITRAIL_MATRIX_ATTR __attribute__((target("arch=armv8.2-a+i8mm+bf16")))

HWY_PUSH_ATTRIBUTES("arch=armv8.2-a+i8mm+bf16")
namespace vitrail::kernels {
namespace {

// 4 row pairs × 4 accumulators, 8 vectors of x and 4 of the panel are 28 of 32 registers.
constexpr size_t kMatrixTileRows = 8;
static_assert(kNeonMatrixPanel.columns == 8 && kNeonMatrixPanel.interleaved_groups == 2);
constexpr int64_t kGroupPair = 16;  // a panel's elements of two K groups

struct Int8Matrix {
  HWY_INLINE static int32x4_t multiply_add(int32x4_t accumulator, int32x4_t x, int32x4_t w) {
    return vusmmlaq_s32(accumulator, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(w));
  }
};

struct Bf16Matrix {
  HWY_INLINE static int32x4_t multiply_add(int32x4_t accumulator, int32x4_t x, int32x4_t w) {
    return vreinterpretq_s32_f32(
        vbfmmlaq_f32(vreinterpretq_f32_s32(accumulator), vreinterpretq_bf16_s32(x), vreinterpretq_bf16_s32(w)));
  }
};

// The first, or the second, 64 bits of a and of b.
HWY_INLINE int32x4_t lower_halves(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
HWY_INLINE int32x4_t upper_halves(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

// The accumulators of two rows: a vector has two columns of the upper row, then those of the lower.
struct RowPair {
  int32x4_t c01, c23, c45, c67;

  HWY_INLINE static RowPair zero() { return {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)}; }
  HWY_INLINE static RowPair load(const int32_t* upper, const int32_t* lower) {
    const int32x4_t u0 = vld1q_s32(upper), u1 = vld1q_s32(upper + 4), l0 = vld1q_s32(lower), l1 = vld1q_s32(lower + 4);
    return {lower_halves(u0, l0), upper_halves(u0, l0), lower_halves(u1, l1), upper_halves(u1, l1)};
  }
  HWY_INLINE void store_upper(int32_t* to) const {
    vst1q_s32(to, lower_halves(c01, c23));
    vst1q_s32(to + 4, lower_halves(c45, c67));
  }
  HWY_INLINE void store_lower(int32_t* to) const {
    vst1q_s32(to, upper_halves(c01, c23));
    vst1q_s32(to + 4, upper_halves(c45, c67));
  }
  // x: two K groups of each row; panel: the same groups.
  template <class Arithmetic>
  HWY_INLINE void multiply_add(int32x4_t x, const int32_t* panel) {
    c01 = Arithmetic::multiply_add(c01, x, vld1q_s32(panel));
    c23 = Arithmetic::multiply_add(c23, x, vld1q_s32(panel + 4));
    c45 = Arithmetic::multiply_add(c45, x, vld1q_s32(panel + 8));
    c67 = Arithmetic::multiply_add(c67, x, vld1q_s32(panel + 12));
  }
};

// An odd last row is also the lower row of its pair, whose result is not stored.
template <class Arithmetic, size_t rows, size_t... pair>
HWY_NOINLINE void matrix_tile(std::index_sequence<pair...>, const DotMicrokernelArgs& args, int64_t first) {
  int32_t* const c = static_cast<int32_t*>(args.accumulators) + first * args.ld_accumulators;
  const int32_t *const x = args.x + first * args.ldx, *panel = args.panel;
  constexpr auto upper = [](size_t p) VITRAIL_MATRIX_ATTR { return static_cast<int64_t>(2 * p); };
  constexpr auto lower = [](size_t p)
                             VITRAIL_MATRIX_ATTR { return static_cast<int64_t>(std::min(2 * p + 1, rows - 1)); };
  const auto begin = [&](size_t p) VITRAIL_MATRIX_ATTR {
    const int64_t ld = args.ld_accumulators;
    return args.accumulate ? RowPair::load(c + upper(p) * ld, c + lower(p) * ld) : RowPair::zero();
  };
  // Arrays with constant indices only (a fold over `pair`, no loop), so that the compiler keeps them in registers.
  RowPair accumulators[] = {begin(pair)...};
  int64_t g = 0;
  for (; g + 4 <= args.k_groups; g += 4, panel += 2 * kGroupPair) {
    const int32x4_t u[] = {vld1q_s32(x + upper(pair) * args.ldx + g)...};
    const int32x4_t l[] = {vld1q_s32(x + lower(pair) * args.ldx + g)...};
    (accumulators[pair].template multiply_add<Arithmetic>(lower_halves(u[pair], l[pair]), panel), ...);
    (accumulators[pair].template multiply_add<Arithmetic>(upper_halves(u[pair], l[pair]), panel + kGroupPair), ...);
  }
  if (g < args.k_groups) {
    const int32x4_t last[] = {
        vcombine_s32(vld1_s32(x + upper(pair) * args.ldx + g), vld1_s32(x + lower(pair) * args.ldx + g))...};
    (accumulators[pair].template multiply_add<Arithmetic>(last[pair], panel), ...);
  }
  (accumulators[pair].store_upper(c + upper(pair) * args.ld_accumulators), ...);
  ((2 * pair + 1 < rows ? accumulators[pair].store_lower(c + lower(pair) * args.ld_accumulators) : void()), ...);
}

template <class Arithmetic>
void multiply(const DotMicrokernelArgs& args) {
  const auto tile = [&]<size_t... row>(std::index_sequence<row...>, int64_t first) VITRAIL_MATRIX_ATTR {
    constexpr size_t kRows = sizeof...(row);
    matrix_tile<Arithmetic, kRows>(std::make_index_sequence<(kRows + 1) / 2>(), args, first);
  };
  for_each_register_tile<kMatrixTileRows>(args.rows, tile);
}

}  // namespace

DotMicrokernel neon_i8mm_microkernel() { return &multiply<Int8Matrix>; }
DotMicrokernel neon_bf16_microkernel() { return &multiply<Bf16Matrix>; }

}  // namespace vitrail::kernels
HWY_POP_ATTRIBUTES
#else
namespace vitrail::kernels {

DotMicrokernel neon_i8mm_microkernel() { throw std::logic_error("USMMLA exists on 64-bit ARM only"); }
DotMicrokernel neon_bf16_microkernel() { throw std::logic_error("BFMMLA exists on 64-bit ARM only"); }

}  // namespace vitrail::kernels
#endif
