// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/artefact_tokens.h"

#include <algorithm>
#include <cmath>

#include "vitrail/analysis/normal_mixture.h"

namespace vitrail::analysis {
namespace {

// A normal distribution is rarely fitted by two so far apart, and a uniform one has 3 deviations.
constexpr double kApart = 4;

bool has_two_groups(const NormalMixture& mixture) {
  const auto& [lower, upper] = mixture.components;
  return upper.mean - lower.mean > kApart * std::max(lower.deviation, upper.deviation);
}

// Between the means, by bisection: the upper component is the more likely one above.
double crossing(const NormalMixture& mixture) {
  double low = mixture.components[0].mean, high = mixture.components[1].mean;
  while (high - low > 1e-12 * std::max(1.0, std::abs(high))) {
    const double middle = (low + high) / 2;
    (mixture.log_density(1, middle) > mixture.log_density(0, middle) ? high : low) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::optional<ArtefactTokens> artefact_tokens(const std::vector<double>& norms) {
  std::vector<double> logarithms;
  for (const double norm : norms) {
    if (!std::isfinite(norm) || norm <= 0) return std::nullopt;
    logarithms.push_back(std::log(norm));
  }
  if (norms.size() < 2) return std::nullopt;
  const NormalMixture mixture = fit_normal_mixture(logarithms);
  if (!has_two_groups(mixture)) return std::nullopt;
  const double threshold = std::exp(crossing(mixture));
  const auto above = std::ranges::count_if(norms, [&](double norm) { return norm > threshold; });
  return ArtefactTokens{threshold, static_cast<double>(above) / static_cast<double>(norms.size())};
}

}  // namespace vitrail::analysis
