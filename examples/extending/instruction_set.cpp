// SPDX-License-Identifier: Apache-2.0
// A kernel with a version for each instruction set, chosen at run time: rms_norm_kernel.cpp.
#include <algorithm>
#include <limits>
#include <vector>

#include "examples/extending/rms_norm_kernel.h"
#include "examples/show.h"
#include "vitrail/kernels/isa/isa.h"

namespace {

using namespace vitrail;

// The largest |y − scalar| / max |scalar| of some rows.
double relative_error(int64_t rows, int64_t cols) {
  const Tensor x = Tensor::randn({rows, cols}, 1), gamma = Tensor::randn({cols}, 2), y = Tensor::zeros({rows, cols});
  extending::rms_norm_rows(x.data<float>(), gamma.data<float>(), 1e-6f, y.data<float>(), rows, cols);
  std::vector<float> reference(static_cast<size_t>(cols));
  double worst = 0, largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    extending::scalar::rms_norm_row(x.data<float>() + r * cols, gamma.data<float>(), 1e-6f, reference.data(), cols);
    for (int64_t c = 0; c < cols; ++c) {
      const double want = reference[static_cast<size_t>(c)];
      worst = std::max(worst, std::abs(y.data<float>()[r * cols + c] - want));
      largest = std::max(largest, std::abs(want));
    }
  }
  return worst / largest;
}

}  // namespace

int main() {
  for (const kernels::Isa isa : kernels::available_isas()) {
    kernels::force_isa(isa);
    std::printf("%-12s runs the kernels compiled for %s\n", name_of(isa), kernels::dispatched_target().c_str());
    for (const int64_t cols : {1, 3, 7, 8, 9, 15, 16, 17, 31, 192}) {  // around the numbers of lanes
      // Sums of cols squares in another order, then four roundings; the root halves the error of its argument.
      const double tolerance = (static_cast<double>(cols) / 2 + 4) * std::numeric_limits<float>::epsilon();
      show::check("  " + std::to_string(cols) + " columns agree with the scalar kernel",
                  relative_error(5, cols) <= tolerance);
    }
  }
  return show::mismatches;
}
