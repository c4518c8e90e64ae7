// SPDX-License-Identifier: Apache-2.0
// The bf16 GEMM, by the microkernels of AVX-512 BF16, of 64-bit ARM's bf16 and of AMX; the latter on emulated tiles
// where there is no AMX.
#include <array>

#include "tests/kernels/emulated_microkernels.h"
#include "tests/kernels/linear_problem.h"

namespace vitrail::kernels {
namespace {

using testing::emulated_amx;
using testing::emulated_bf16;
using testing::Problem;
using testing::round_values_to_bf16;
using testing::run;
using testing::TestedMicrokernel;

std::vector<TestedMicrokernel> bf16_microkernels_of(Isa isa) {
  std::vector<TestedMicrokernel> all{{emulated_bf16}, {emulated_amx, {kAvx512Columns}, kAmxRows}};
  if (features_of(isa).has(Feature::avx512_bf16)) all.push_back({bf16_microkernel()});
  if (features_of(isa).has(Feature::amx)) all.push_back({amx_bf16_microkernel(), {kAvx512Columns}, kAmxRows});
  if (features_of(isa).has(Feature::neon_bf16)) all.push_back({neon_bf16_microkernel(), kNeonMatrixPanel});
  return all;
}

// With operands that bf16 represents exactly, only the sums in fp32 are rounded.
TEST(Bf16Gemm, EqualsTheExactGemmOfTheRoundedOperands) {
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{13, 97, 33}, {1, 1, 1}, {50, 64, 130}, {401, 1600, 40}}) {
    Problem problem(rows, in, out);
    const Problem given = problem;
    round_values_to_bf16(problem.x);
    round_values_to_bf16(problem.weight);
    const std::vector<double> want = problem.expected(Activation::none);
    testing::for_each_isa([&, in = in, out = out](Isa isa) {
      if (isa == Isa::scalar) return;
      for (const auto& [microkernel, panel, blocking] : bf16_microkernels_of(isa)) {
        const auto gemm = make_bf16_gemm(given.weight.data(), given.bias.data(), out, in, microkernel, panel, blocking);
        // Twice: vdpbf16ps and tdpbf16ps round the product of a pair too.  BFMMLA rounds each pair's sum and each
        // accumulator to odd, that is by up to eps instead of eps / 2.
        testing::expect_close(run(*gemm, given), want, [&](int64_t i) { return 2 * problem.tolerance(i); });
      }
    });
  }
}

}  // namespace
}  // namespace vitrail::kernels
