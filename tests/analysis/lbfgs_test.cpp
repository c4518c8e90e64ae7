// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "vitrail/analysis/lbfgs_internal.h"

namespace vitrail::analysis {
namespace {

using Vector = std::vector<double>;

// Σ i · (x_i − i)², whose minimum is at 1, 2, 3, ...
double quadratic(const Vector& x, Vector& gradient) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto n = static_cast<double>(i + 1);
    sum += n * (x[i] - n) * (x[i] - n);
    gradient[i] = 2 * n * (x[i] - n);
  }
  return sum;
}

double rosenbrock(const Vector& x, Vector& gradient) {
  const double a = 1 - x[0], b = x[1] - x[0] * x[0];
  gradient = {-2 * a - 400 * x[0] * b, 200 * b};
  return a * a + 100 * b * b;
}

TEST(Lbfgs, FindsTheMinimumOfAQuadraticOfManyVariables) {
  const LbfgsResult got = minimize_lbfgs(quadratic, Vector(30), {.tolerance = 1e-9});
  EXPECT_TRUE(got.converged);
  EXPECT_LE(got.largest_gradient, 1e-9);
  for (size_t i = 0; i < 30; ++i) EXPECT_NEAR(got.x[i], static_cast<double>(i + 1), 1e-9);
}

TEST(Lbfgs, FollowsTheCurvedValleyOfRosenbrocksFunction) {
  for (const Vector& start : {Vector{-1.2, 1}, {0, 0}, {3, -4}}) {
    const LbfgsResult got = minimize_lbfgs(rosenbrock, start, {.tolerance = 1e-10});
    EXPECT_TRUE(got.converged);
    EXPECT_NEAR(got.x[0], 1, 1e-8);
    EXPECT_NEAR(got.x[1], 1, 1e-8);
    EXPECT_LT(got.iterations, 100) << "steps along the gradient need thousands";
  }
}

TEST(Lbfgs, AtTheMinimumNeedsNoIteration) {
  const LbfgsResult got = minimize_lbfgs(quadratic, {1, 2, 3}, {});
  EXPECT_TRUE(got.converged);
  EXPECT_EQ(got.iterations, 0);
  EXPECT_EQ(got.x, (Vector{1, 2, 3}));
  EXPECT_TRUE(minimize_lbfgs(quadratic, {}, {}).converged) << "no variables";
}

// The gradient 2 (x − 1) of the first variable alone is 1e-4 at the start.
TEST(Lbfgs, AGradientEqualToTheToleranceIsSmallEnough) {
  Vector gradient(1);
  quadratic({1.5}, gradient);
  EXPECT_EQ(minimize_lbfgs(quadratic, {1.5}, {.tolerance = gradient[0]}).iterations, 0);
  EXPECT_GT(minimize_lbfgs(quadratic, {1.5}, {.tolerance = 0.999 * gradient[0]}).iterations, 0);
}

TEST(Lbfgs, StopsAtTheMaximumOfIterations) {
  for (const int64_t max : {0, 1, 3}) {
    const LbfgsResult got = minimize_lbfgs(rosenbrock, {-1.2, 1}, {.max_iterations = max});
    EXPECT_EQ(got.iterations, max);
    EXPECT_FALSE(got.converged);
    Vector gradient(2);
    rosenbrock(got.x, gradient);
    EXPECT_EQ(got.largest_gradient, std::max(std::abs(gradient[0]), std::abs(gradient[1])));
  }
}

// Values never rise, and steps beyond the domain are shortened.
TEST(Lbfgs, StaysWhereTheFunctionIsFinite) {
  const auto barrier = [](const Vector& x, Vector& gradient) {  // x − log x, with its minimum at 1
    gradient[0] = 1 - 1 / x[0];
    return x[0] > 0 ? x[0] - std::log(x[0]) : std::numeric_limits<double>::quiet_NaN();
  };
  for (const double start : {1e-3, 0.5, 50.0}) {
    const LbfgsResult got = minimize_lbfgs(barrier, {start}, {.tolerance = 1e-9});
    EXPECT_TRUE(got.converged) << start;
    EXPECT_NEAR(got.x[0], 1, 1e-8) << start;
  }
}

}  // namespace
}  // namespace vitrail::analysis
