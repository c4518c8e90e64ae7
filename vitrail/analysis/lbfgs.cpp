// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "vitrail/analysis/lbfgs_internal.h"

namespace vitrail::analysis {
namespace {

using Vector = std::vector<double>;

constexpr size_t kMemory = 10;                        // pairs that approximate the inverse Hessian, as in SciPy
constexpr double kDecrease = 1e-4, kCurvature = 0.9;  // Nocedal & Wright, section 3.1, for quasi-Newton methods
// Relative error of the function's values.  Near the minimum their differences are smaller, and the slopes decide.
constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();
constexpr int kMaxTrials = 50;  // halvings reach the rounding error of a double before that

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(Vector& to, double scale, const Vector& of) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += scale * of[i];
}

double largest(const Vector& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

struct Point {
  Vector x, gradient;
  double value = 0;
};

struct Pair {
  Vector s, y;  // differences of x and of the gradient between two iterations
  double rho;   // 1 / sᵀy
};

// −H·gradient, with the inverse Hessian H that the pairs approximate (algorithm 7.4, the two-loop recursion).
Vector direction_of(const Vector& gradient, const std::deque<Pair>& pairs) {
  Vector q = gradient, alpha(pairs.size());
  for (size_t i = pairs.size(); i-- > 0;) {
    alpha[i] = pairs[i].rho * dot(pairs[i].s, q);
    add_scaled(q, -alpha[i], pairs[i].y);
  }
  // H₀ is a multiple of the identity (7.20).  Without pairs the first step has at most unit length.
  const double scale = pairs.empty() ? std::min(1.0, 1 / std::sqrt(dot(gradient, gradient)))
                                     : 1 / (pairs.back().rho * dot(pairs.back().y, pairs.back().y));
  for (double& value : q) value *= scale;
  for (size_t i = 0; i < pairs.size(); ++i) add_scaled(q, alpha[i] - pairs[i].rho * dot(pairs[i].y, q), pairs[i].s);
  for (double& value : q) value = -value;
  return q;
}

// Finds a step along `direction` that meets the weak Wolfe conditions, by doubling and bisection (Lewis & Overton 2013,
// "Nonsmooth optimization via quasi-Newton methods", algorithm 2.6).  They imply sᵀy > 0.  Nothing: rounding errors
// hide any decrease.
std::optional<Point> search_line(const Objective& objective, const Point& from, const Vector& direction) {
  const double slope = dot(from.gradient, direction);
  double low = 0, high = std::numeric_limits<double>::infinity(), step = 1;
  Point to{from.x, from.gradient, 0};
  for (int trial = 0; slope < 0 && trial < kMaxTrials; ++trial) {
    to.x = from.x;
    add_scaled(to.x, step, direction);
    to.value = objective(to.x, to.gradient);
    const double rounding = kRounding * std::abs(from.value);
    if (!(to.value <= from.value + kDecrease * step * slope + rounding)) {  // also for NaN
      high = step;
    } else if (dot(to.gradient, direction) < kCurvature * slope) {
      low = step;
    } else {
      return to;
    }
    step = std::isinf(high) ? 2 * low : (low + high) / 2;
  }
  return std::nullopt;
}

}  // namespace

LbfgsResult minimize_lbfgs(const Objective& objective, Vector x, const LbfgsOptions& options) {
  Point at{std::move(x), {}, 0};
  at.gradient.resize(at.x.size());
  at.value = objective(at.x, at.gradient);
  std::deque<Pair> pairs;
  int64_t iterations = 0;
  for (; iterations < options.max_iterations && largest(at.gradient) > options.tolerance; ++iterations) {
    std::optional<Point> next = search_line(objective, at, direction_of(at.gradient, pairs));
    if (!next) break;
    Pair pair{next->x, next->gradient, 0};
    add_scaled(pair.s, -1, at.x);
    add_scaled(pair.y, -1, at.gradient);
    at = std::move(*next);
    const double curvature = dot(pair.s, pair.y);
    if (!(curvature > 0)) break;  // rounding errors only
    pair.rho = 1 / curvature;
    if (pairs.size() == kMemory) pairs.pop_front();
    pairs.push_back(std::move(pair));
  }
  const double gradient = largest(at.gradient);
  return {std::move(at.x), gradient, iterations, gradient <= options.tolerance};
}

}  // namespace vitrail::analysis
