// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/classification/class_weights_internal.h"

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

std::string class_counts_text(const RunData& data) {
  constexpr size_t kListed = 20;  // some lines of a terminal
  const std::vector<int64_t> counts = class_counts(data.train, data.classes.size());
  const std::string text = "training images of each class: ";
  if (counts.size() > kListed) {
    const auto [smallest, largest] = std::minmax_element(counts.begin(), counts.end());
    const auto name_of = [&](auto at) { return data.classes[static_cast<size_t>(at - counts.begin())]; };
    return text + str(*smallest, " (", name_of(smallest), ") to ", *largest, " (", name_of(largest), ")");
  }
  std::vector<std::string> items;
  for (size_t c = 0; c < counts.size(); ++c) items.push_back(str(data.classes[c], ": ", counts[c]));
  return text + join(items);
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
