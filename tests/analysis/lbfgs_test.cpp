// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

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

// A function of one variable whose values and slopes are given in the order of the calls; the last ones stay.  The
// direction is -1 at a slope of 1, so that the line's first point is -1 from the start.
struct Script {
  std::vector<double> values, slopes, points = {};

  LbfgsResult run(const LbfgsOptions& options = {}) {
    return minimize_lbfgs(
        [&](const Vector& x, Vector& gradient) {
          const size_t call = std::min(points.size(), values.size() - 1);
          points.push_back(x[0]);
          gradient[0] = slopes[call];
          return values[call];
        },
        {0}, options);
  }
};

// A step is long enough unless the slope is below 0.9 of the first one, and short enough if the value falls by 1e-4 of
// what the slope promises.
TEST(Lbfgs, AStepMeetsTheWeakWolfeConditions) {
  for (const auto& [value, slope, points] :
       {std::tuple(-1.001e-4, 0.0, Vector{0, -1}), std::tuple(-0.999e-4, 0.0, Vector{0, -1, -0.5}),
        std::tuple(-0.5, 0.899, Vector{0, -1}), std::tuple(-0.5, 0.901, Vector{0, -1, -2}),
        std::tuple(0.5, 0.0, Vector{0, -1, -0.5})}) {
    Script script{{0, value, -10}, {1, slope, 0}};
    script.run({.max_iterations = 1});
    EXPECT_EQ(script.points, points) << value << " and " << slope;
  }
}

// Doubled until one is too long, then the middle between the longest that is too short and the shortest too long.
TEST(Lbfgs, StepsAreDoubledAndThenHalved) {
  Script script{{0, -1, -2, 5, 5, -3, -9}, {1, 1, 1, 0, 0, 1, 0}};
  const LbfgsResult got = script.run();
  EXPECT_EQ(script.points, (Vector{0, -1, -2, -4, -3, -2.5, -2.75}));
  EXPECT_EQ(got.iterations, 1);
  EXPECT_EQ(got.x, Vector{-2.75});
  EXPECT_TRUE(got.converged);
}

// Eight units in the last place of the value count as rounding.
TEST(Lbfgs, AValueMayRiseByItsRoundingError) {
  const double unit = std::numeric_limits<double>::epsilon();
  for (const auto& [first, units, accepted] :
       {std::tuple(1.0, 8, true), std::tuple(1.0, 9, false), std::tuple(-1.0, 8, true), std::tuple(-1.0, 9, false)}) {
    Script script{{first, first + units * unit}, {1e-9, 0}};
    const LbfgsResult got = script.run({.tolerance = 1e-12});
    EXPECT_EQ(got.converged, accepted) << units;
    EXPECT_EQ(script.points.size(), accepted ? 2U : 1U + 50) << units;
    EXPECT_EQ(got.iterations, accepted ? 1 : 0);
  }
}

// The gradient is wrong: no step lowers the value, and the start is the result.
TEST(Lbfgs, GivesUpAfterFiftyTrials) {
  Script script{{0, 1}, {2, 1}};
  const LbfgsResult got = script.run();
  EXPECT_EQ(script.points.size(), 1U + 50);
  EXPECT_EQ(script.points[1], -1) << "the first step has unit length";
  EXPECT_EQ(script.points[50], -std::pow(0.5, 49));
  EXPECT_EQ(got.x, Vector{0});
  EXPECT_EQ(got.largest_gradient, 2);
  EXPECT_EQ(got.iterations, 0);
  EXPECT_FALSE(got.converged);
}

// A gradient that is shorter than 1 is the first step itself; longer ones are scaled to unit length.
TEST(Lbfgs, TheFirstStepHasAtMostUnitLength) {
  for (const auto& [gradient, step] :
       {std::pair(Vector{0.3, -0.4}, Vector{-0.3, 0.4}), std::pair(Vector{3, -4}, Vector{-0.6, 0.8}),
        std::pair(Vector{0, 1}, Vector{0, -1})}) {
    std::vector<Vector> points;
    minimize_lbfgs(
        [&, gradient = gradient](const Vector& x, Vector& to) {
          points.push_back(x);
          to = points.size() == 1 ? gradient : Vector{0, 0};
          return points.size() == 1 ? 0.0 : -100.0;
        },
        {0, 0}, {});
    ASSERT_EQ(points.size(), 2U);
    for (size_t i = 0; i < 2; ++i) EXPECT_DOUBLE_EQ(points[1][i], step[i]);
  }
}

// The formula (7.17) of the book with matrices, for the last `memory` pairs of differences.
Vector direction_by_matrices(const Vector& gradient, const std::vector<std::pair<Vector, Vector>>& pairs,
                             size_t memory) {
  const size_t n = gradient.size(), first = pairs.size() > memory ? pairs.size() - memory : 0;
  const auto dot = [](const Vector& a, const Vector& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const auto& [s, y] = pairs.back();
  std::vector<Vector> h(n, Vector(n));
  for (size_t i = 0; i < n; ++i) h[i][i] = dot(s, y) / dot(y, y);
  for (size_t p = first; p < pairs.size(); ++p) {
    const double rho = 1 / dot(pairs[p].first, pairs[p].second);
    std::vector<Vector> v(n, Vector(n)), next(n, Vector(n));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) v[i][j] = (i == j) - rho * pairs[p].second[i] * pairs[p].first[j];
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        next[i][j] = rho * pairs[p].first[i] * pairs[p].first[j];
        for (size_t a = 0; a < n; ++a) {
          for (size_t b = 0; b < n; ++b) next[i][j] += v[a][i] * h[a][b] * v[b][j];
        }
      }
    }
    h = next;
  }
  Vector direction(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) direction[i] -= h[i][j] * gradient[j];
  }
  return direction;
}

// Each iteration's first point is a whole step along the direction of the ten last pairs.
TEST(Lbfgs, DirectionsAreThoseOfTheTenLastPairs) {
  const size_t n = 14;
  const auto function = [](const Vector& x, Vector& gradient) {  // convex, with another curvature everywhere
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double weight = std::pow(2.5, static_cast<double>(i % 7)), d = x[i] - 0.3 * static_cast<double>(i + 1);
      sum += weight * d * d + d * d * d * d;
      gradient[i] = 2 * weight * d + 4 * d * d * d;
    }
    return sum;
  };
  std::vector<std::pair<Vector, Vector>> pairs;
  Vector before, before_gradient;
  bool memory_matters = false;
  for (int64_t iterations = 0; iterations < 18; ++iterations) {
    std::vector<Vector> points;
    const auto recorded = [&](const Vector& x, Vector& gradient) {
      points.push_back(x);
      return function(x, gradient);
    };
    const Vector at = minimize_lbfgs(function, Vector(n), {.tolerance = 1e-12, .max_iterations = iterations}).x;
    const size_t trials = [&] {
      minimize_lbfgs(recorded, Vector(n), {.tolerance = 1e-12, .max_iterations = iterations});
      return points.size();
    }();
    points.clear();
    minimize_lbfgs(recorded, Vector(n), {.tolerance = 1e-12, .max_iterations = iterations + 1});
    Vector gradient(n);
    function(at, gradient);
    if (iterations > 0) {
      Vector s = at, y = gradient;
      for (size_t i = 0; i < n; ++i) s[i] -= before[i], y[i] -= before_gradient[i];
      pairs.emplace_back(s, y);
      const Vector want = direction_by_matrices(gradient, pairs, 10), all = direction_by_matrices(gradient, pairs, 99);
      ASSERT_GT(points.size(), trials);
      double length = 0, error = 0, other = 0;
      for (size_t i = 0; i < n; ++i) {
        length = std::max(length, std::abs(want[i]));
        error = std::max(error, std::abs(points[trials][i] - at[i] - want[i]));
        other = std::max(other, std::abs(all[i] - want[i]));
      }
      EXPECT_LE(error, 1e-6 * length) << "iteration " << iterations;
      memory_matters = memory_matters || other > 1e-3 * length;
    }
    before = at;
    before_gradient = gradient;
  }
  EXPECT_TRUE(memory_matters) << "more pairs must give other directions";
}

TEST(Lbfgs, OptionsHaveTheDefaultsOfTheHeader) {
  EXPECT_EQ(LbfgsOptions{}.tolerance, 1e-4);
  EXPECT_EQ(LbfgsOptions{}.max_iterations, 1000);
}

}  // namespace
}  // namespace vitrail::analysis
