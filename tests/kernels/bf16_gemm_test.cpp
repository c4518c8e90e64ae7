// SPDX-License-Identifier: Apache-2.0
// The bf16 GEMM, by the microkernels of AVX-512 BF16, of 64-bit ARM's bf16 and of AMX; the latter on emulated tiles
// where there is no AMX.
#include <array>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/dtype.h"
#include "vitrail/kernels/gemm/amx_microkernel-inl.h"

namespace vitrail::kernels {
namespace {

using testing::Problem;
using testing::run;

// vdpbf16ps in plain C++.
void emulated_bf16(const DotMicrokernelArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t c = 0; c < kAvx512Columns; ++c) {
      float& sum = static_cast<float*>(args.accumulators)[r * args.ld_accumulators + c];
      if (!args.accumulate) sum = 0;
      for (int64_t g = 0; g < args.k_groups; ++g) {
        const auto* const x = reinterpret_cast<const BFloat16*>(args.x + r * args.ldx + g);
        const auto* const w = reinterpret_cast<const BFloat16*>(args.panel + g * kAvx512Columns + c);
        for (int i = 0; i < 2; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(w[i]);
      }
    }
  }
}

void emulated_amx(const DotMicrokernelArgs& args) { amx_dot<Bf16Tiles<EmulatedTiles>>(args, emulated_bf16); }

struct TestedMicrokernel {
  DotMicrokernel run;
  PanelLayout panel{kAvx512Columns};
};

std::vector<TestedMicrokernel> microkernels_of(Isa isa) {
  std::vector<TestedMicrokernel> all{{emulated_bf16}, {emulated_amx}};
  if (features_of(isa).has(Feature::avx512_bf16)) all.push_back({bf16_microkernel()});
  if (features_of(isa).has(Feature::amx)) all.push_back({amx_bf16_microkernel()});
  if (features_of(isa).has(Feature::neon_bf16)) all.push_back({neon_bf16_microkernel(), kNeonMatrixPanel});
  return all;
}

void round(std::vector<float>& values) {
  for (float& value : values) value = static_cast<float>(BFloat16(value));
}

// With operands that bf16 represents exactly, only the sums in fp32 are rounded.
TEST(Bf16Gemm, EqualsTheExactGemmOfTheRoundedOperands) {
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{13, 97, 33}, {1, 1, 1}, {50, 64, 130}, {401, 1600, 40}}) {
    Problem problem(rows, in, out);
    const Problem given = problem;
    round(problem.x);
    round(problem.weight);
    const std::vector<double> want = problem.expected(Activation::none);
    testing::for_each_isa([&, in = in, out = out](Isa isa) {
      if (isa == Isa::scalar) return;
      for (const auto& [microkernel, panel] : microkernels_of(isa)) {
        const auto gemm = make_bf16_gemm(given.weight.data(), given.bias.data(), out, in, microkernel, panel);
        // Twice: vdpbf16ps and tdpbf16ps round the product of a pair too.  BFMMLA rounds each pair's sum and each
        // accumulator to odd, that is by up to eps instead of eps / 2.
        testing::expect_close(run(*gemm, given), want, [&](int64_t i) { return 2 * problem.tolerance(i); });
      }
    });
  }
}

}  // namespace
}  // namespace vitrail::kernels
