// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of GEMMs share: a problem with its expected result, a microkernel with its layout, and runs with
// scratch of the size asked for.
#include <cmath>
#include <cstddef>
#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/dtype.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels::testing {

// y = x · weightᵀ + bias with x [rows, in] and weight [out, in], all standard normal.
struct Problem {
  int64_t rows, in, out;
  std::vector<float> x, weight, bias;
  Problem(int64_t rows, int64_t in, int64_t out)
      : rows(rows),
        in(in),
        out(out),
        x(random_floats(rows * in, 1)),
        weight(random_floats(out * in, 2)),
        bias(random_floats(out, 3)) {}

  std::vector<double> expected(Activation activation) const {
    std::vector<double> y(static_cast<size_t>(rows * out));
    for (int64_t i = 0; i < rows * out; ++i) {
      double sum = bias[i % out];
      for (int64_t p = 0; p < in; ++p) sum += double{x[i / out * in + p]} * weight[i % out * in + p];
      y[i] = scalar::activate(activation, sum);
    }
    return y;
  }

  // For fp32: a sum of `in` products is rounded at most in + 1 times, each time by at most eps / 2 of Σ|x w| + |b|.
  double tolerance(int64_t i) const {
    double sum = std::abs(bias[i % out]);
    for (int64_t p = 0; p < in; ++p) sum += std::abs(double{x[i / out * in + p]} * weight[i % out * in + p]);
    return std::numeric_limits<float>::epsilon() / 2 * static_cast<double>(in + 2) * sum + 1e-7;
  }
};

inline void round_values_to_bf16(std::vector<float>& values) {
  for (float& value : values) value = static_cast<float>(BFloat16(value));
}

struct TestedMicrokernel {
  DotMicrokernel run;
  PanelLayout panel{kAvx512Columns};
  RowBlocking rows = {};
};

class Scratch {
 public:
  explicit Scratch(size_t bytes) : memory_(bytes + kAlignment) {}
  std::byte* aligned() {
    return memory_.data() + (kAlignment - reinterpret_cast<uintptr_t>(memory_.data()) % kAlignment);
  }

 private:
  static constexpr size_t kAlignment = 64;
  std::vector<std::byte> memory_;
};

inline std::vector<float> run(const PackedGemm& gemm, const Problem& problem, const Epilogue& epilogue = {},
                              const TwoTermRows& two_term = {}) {
  std::vector<float> y(static_cast<size_t>(problem.rows * problem.out));
  const LinearRows rows{.count = problem.rows, .two_term = two_term};
  Scratch scratch(gemm.scratch_bytes(rows));
  gemm.run({.x = {problem.x.data(), problem.in},
            .y = {y.data(), problem.out},
            .rows = rows,
            .epilogue = epilogue,
            .scratch = scratch.aligned()});
  return y;
}

inline std::vector<float> run(const PackedLinear& linear, const Problem& problem, const TwoTermRows& two_term = {},
                              const WeightCorrection& correction = {}) {
  std::vector<float> y(static_cast<size_t>(problem.rows * problem.out));
  const LinearRows rows{.count = problem.rows, .two_term = two_term, .correction = correction};
  Scratch scratch(linear.scratch_bytes(rows));
  linear.run({problem.x.data(), problem.in}, {y.data(), problem.out}, rows, {}, scratch.aligned());
  return y;
}

}  // namespace vitrail::kernels::testing
