// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/normal_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

constexpr double kAddedVariance = 1e-6;
constexpr double kLikelihoodTolerance = 1e-10;  // change of the mean log likelihood between two iterations
constexpr int kMaxSteps = 10000;

// A component of values with the given weights.
template <class Weight>
NormalMixture::Component component_of(const std::vector<double>& values, const Weight& weight) {
  double total = 0, mean = 0, variance = 0;
  for (size_t i = 0; i < values.size(); ++i) total += weight(i);
  total += 10 * std::numeric_limits<double>::epsilon();  // a component may have no values
  for (size_t i = 0; i < values.size(); ++i) mean += weight(i) * values[i] / total;
  for (size_t i = 0; i < values.size(); ++i) variance += weight(i) * (values[i] - mean) * (values[i] - mean) / total;
  return {total / static_cast<double>(values.size()), mean, std::sqrt(variance + kAddedVariance)};
}

// The number of values in the lower group of the best split of sorted values: the squared distances from the groups'
// means are least where the squared sums over counts are largest.
size_t best_split(const std::vector<double>& sorted) {
  double total = 0, lower = 0, best = -std::numeric_limits<double>::infinity();
  for (const double value : sorted) total += value - sorted.front();
  size_t split = 1;
  for (size_t count = 1; count < sorted.size(); ++count) {
    lower += sorted[count - 1] - sorted.front();
    const double upper = total - lower;
    const double score =
        lower * lower / static_cast<double>(count) + upper * upper / static_cast<double>(sorted.size() - count);
    if (score > best) split = count;
    best = std::max(best, score);
  }
  return split;
}

// E step: the share of the upper component in each value, and the log likelihood.
double responsibilities(const NormalMixture& mixture, const std::vector<double>& values, std::vector<double>& upper) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double a = mixture.log_density(0, values[i]), b = mixture.log_density(1, values[i]);
    const double both = std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
    upper[i] = std::exp(b - both);
    sum += both;
  }
  return sum;
}

}  // namespace

double NormalMixture::log_density(size_t component, double x) const {
  const auto& [weight, mean, deviation] = components[component];
  const double z = (x - mean) / deviation;
  return std::log(weight) - std::log(deviation) - 0.5 * (z * z + std::log(2 * std::numbers::pi));
}

NormalMixture fit_normal_mixture(std::vector<double> values) {
  if (values.size() < 2) throw Error("mixture", "at least two values", str(values.size()));
  for (const double value : values)
    if (!std::isfinite(value)) throw Error("mixture", "finite values", str(value));
  std::ranges::sort(values);
  const size_t split = best_split(values);
  NormalMixture mixture{.components = {component_of(values, [&](size_t i) { return i < split ? 1.0 : 0.0; }),
                                       component_of(values, [&](size_t i) { return i < split ? 0.0 : 1.0; })}};
  std::vector<double> upper(values.size());
  const auto count = static_cast<double>(values.size());
  double before = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMaxSteps; ++i) {
    const double likelihood = responsibilities(mixture, values, upper) / count;
    mixture.components = {component_of(values, [&](size_t at) { return 1 - upper[at]; }),
                          component_of(values, [&](size_t at) { return upper[at]; })};
    if (std::abs(likelihood - before) < kLikelihoodTolerance) break;
    before = likelihood;
  }
  mixture.log_likelihood = responsibilities(mixture, values, upper);
  if (mixture.components[0].mean > mixture.components[1].mean) std::swap(mixture.components[0], mixture.components[1]);
  return mixture;
}

}  // namespace vitrail::analysis
