// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/train/class_weights_internal.h"

namespace vitrail::train {
namespace {

std::vector<float> inverse_frequencies(const RunData& data) {
  const std::vector<int64_t> counts = class_counts(data.train, data.classes.size());
  const auto present = std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
  std::vector<float> weights;
  for (const int64_t count : counts) {
    const double weight =
        static_cast<double>(data.train.size()) / static_cast<double>(present * std::max<int64_t>(count, 1));
    weights.push_back(count > 0 ? static_cast<float>(weight) : 0);
  }
  return weights;
}

}  // namespace

std::vector<int64_t> class_counts(const Subset& subset, size_t classes) {
  std::vector<int64_t> counts(classes);
  for (int64_t i = 0; i < subset.size(); ++i) {
    const int64_t sample = subset.samples.empty() ? i : subset.samples[static_cast<size_t>(i)];
    for (const int64_t label : subset.dataset->labels(sample)) ++counts.at(static_cast<size_t>(label));
  }
  return counts;
}

Tensor class_weights(const LossRecipe& recipe, const RunData& data) {
  const auto classes = static_cast<int64_t>(data.classes.size());
  if (recipe.class_weighting == "inverse_frequency") return Tensor::from<float>({classes}, inverse_frequencies(data));
  if (recipe.class_weights.empty()) return {};
  if (recipe.class_weights.size() != data.classes.size())
    throw Error("loss.class_weights", str(classes, " weights, one for each class"), str(recipe.class_weights.size()));
  return Tensor::from<float>({classes}, {recipe.class_weights.begin(), recipe.class_weights.end()});
}

}  // namespace vitrail::train
