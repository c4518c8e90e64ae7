// SPDX-License-Identifier: Apache-2.0
// The int8 dot-product microkernel of 64-bit ARM's dot-product extension: SDOT multiplies a K group of a row by those
// of four columns, and adds.  Written in intrinsics because Highway 1.0 has no such operation.
#include <stdexcept>

#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/register_tile_internal.h"
#include "vitrail/kernels/isa/arm_extensions_internal.h"

#if VITRAIL_ARM_EXTENSIONS
#include <arm_neon.h>

// For lambdas, which HWY_PUSH_ATTRIBUTES does not reach.
#define VITRAIL_SDOT_ATTR __attribute__((target("arch=armv8.2-a+dotprod")))

HWY_PUSH_ATTRIBUTES("arch=armv8.2-a+dotprod")
namespace vitrail::kernels {
namespace {

// 8 × 2 accumulators, 8 vectors of x and 2 of the panel are 26 of 32 registers.
constexpr size_t kSdotTileRows = 8;
constexpr int64_t kColumns = 8;

struct PanelRow {
  int32x4_t left, right;  // columns 0 to 3, and 4 to 7
};

HWY_INLINE PanelRow load(const int32_t* columns) { return {vld1q_s32(columns), vld1q_s32(columns + 4)}; }

// SDOT's operands are both signed: Σ x w = Σ (x − 128) w + 128 Σ w.
HWY_INLINE int8x16_t minus_128(int32x4_t x) {
  return vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_s32(x), vdupq_n_u8(128)));
}

// 128 Σ w of each column.
PanelRow compensation_of(const DotMicrokernelArgs& args) {
  const int8x16_t ones = vdupq_n_s8(1);
  PanelRow sums{vdupq_n_s32(0), vdupq_n_s32(0)};
  for (int64_t g = 0; g < args.k_groups; ++g) {
    const PanelRow w = load(args.panel + g * kColumns);
    sums.left = vdotq_s32(sums.left, vreinterpretq_s8_s32(w.left), ones);
    sums.right = vdotq_s32(sums.right, vreinterpretq_s8_s32(w.right), ones);
  }
  return {vshlq_n_s32(sums.left, 7), vshlq_n_s32(sums.right, 7)};
}

// Adds the K group in this lane of x.
template <int lane>
HWY_INLINE void multiply_add(PanelRow& accumulator, int8x16_t x, const PanelRow& w) {
  accumulator.left = vdotq_laneq_s32(accumulator.left, vreinterpretq_s8_s32(w.left), x, lane);
  accumulator.right = vdotq_laneq_s32(accumulator.right, vreinterpretq_s8_s32(w.right), x, lane);
}

template <size_t... row>
HWY_NOINLINE void sdot_tile(std::index_sequence<row...>, const DotMicrokernelArgs& args, int64_t first,
                            const PanelRow& compensation) {
  int32_t* const c = static_cast<int32_t*>(args.accumulators) + first * args.ld_accumulators;
  const auto c_row = [&](size_t r) VITRAIL_SDOT_ATTR { return c + static_cast<int64_t>(r) * args.ld_accumulators; };
  const auto begin = [&](size_t r) VITRAIL_SDOT_ATTR -> PanelRow {
    if (!args.accumulate) return compensation;
    const PanelRow before = load(c_row(r));
    return {vaddq_s32(before.left, compensation.left), vaddq_s32(before.right, compensation.right)};
  };
  // An array with constant indices only (a fold over `row`, no loop), so that the compiler keeps it in registers.
  PanelRow accumulators[] = {begin(row)...};
  const int32_t *const x = args.x + first * args.ldx, *panel = args.panel;
  int64_t g = 0;
  for (; g + 4 <= args.k_groups; g += 4, panel += 4 * kColumns) {
    const int8x16_t groups[] = {minus_128(vld1q_s32(x + static_cast<int64_t>(row) * args.ldx + g))...};
    (multiply_add<0>(accumulators[row], groups[row], load(panel)), ...);
    (multiply_add<1>(accumulators[row], groups[row], load(panel + kColumns)), ...);
    (multiply_add<2>(accumulators[row], groups[row], load(panel + 2 * kColumns)), ...);
    (multiply_add<3>(accumulators[row], groups[row], load(panel + 3 * kColumns)), ...);
  }
  for (; g < args.k_groups; ++g, panel += kColumns) {
    (multiply_add<0>(accumulators[row], minus_128(vdupq_n_s32(x[static_cast<int64_t>(row) * args.ldx + g])),
                     load(panel)),
     ...);
  }
  (vst1q_s32(c_row(row), accumulators[row].left), ...);
  (vst1q_s32(c_row(row) + 4, accumulators[row].right), ...);
}

void sdot(const DotMicrokernelArgs& args) {
  const PanelRow compensation = compensation_of(args);
  for_each_register_tile<kSdotTileRows>(args.rows, [&](auto tile_rows, int64_t first) VITRAIL_SDOT_ATTR {
    sdot_tile(tile_rows, args, first, compensation);
  });
}

}  // namespace

DotMicrokernel neon_dotprod_microkernel() { return &sdot; }

}  // namespace vitrail::kernels
HWY_POP_ATTRIBUTES
#else
namespace vitrail::kernels {

DotMicrokernel neon_dotprod_microkernel() { throw std::logic_error("SDOT exists on 64-bit ARM only"); }

}  // namespace vitrail::kernels
#endif
