// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/top_activations.h"

#include <algorithm>
#include <cmath>

namespace vitrail::analysis {

void TopActivations::add(int64_t image, const Tensor& values) {
  const Tensor activations = values.contiguous();
  for (int64_t patch = 0; patch < activations.numel(); ++patch) {
    const float value = activations.data<float>()[patch];
    const bool enters = top_.size() < count_ || (!top_.empty() && value > top_.back().value);
    if (std::isnan(value) || !enters) continue;
    const auto place = std::ranges::upper_bound(top_, value, std::greater<>(), &PatchActivation::value);
    top_.insert(place, {image, patch, value});
    if (top_.size() > count_) top_.pop_back();
  }
}

}  // namespace vitrail::analysis
