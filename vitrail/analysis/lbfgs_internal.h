// SPDX-License-Identifier: Apache-2.0
#pragma once
// L-BFGS: minimisation of a smooth function of many variables (Nocedal & Wright 2006, "Numerical Optimization",
// section 7.2).
#include <cstdint>
#include <functional>
#include <vector>

namespace vitrail::analysis {

// Returns the function's value at `x` and writes its gradient.
using Objective = std::function<double(const std::vector<double>& x, std::vector<double>& gradient)>;

struct LbfgsOptions {
  double tolerance = 1e-4;        // stop if no element of the gradient is larger
  int64_t max_iterations = 1000;  // each evaluates the function at least once
};

struct LbfgsResult {
  std::vector<double> x;
  double largest_gradient = 0;  // absolute value
  int64_t iterations = 0;
  bool converged = false;  // false: stopped by max_iterations, or by rounding before the tolerance was reached
};

// Minimises a function that is bounded below and has a continuous gradient, starting at `x`.
LbfgsResult minimize_lbfgs(const Objective& objective, std::vector<double> x, const LbfgsOptions& options);

}  // namespace vitrail::analysis
