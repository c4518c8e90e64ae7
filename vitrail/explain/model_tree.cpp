// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/model_tree_internal.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBins = 24;

// Mean, standard deviation, extremes, and counts in bins of equal width between them; values that are not finite are
// counted by themselves.
Json parameter_json(const nn::NamedTensor& parameter) {
  const Tensor values = parameter.tensor.to(DType::f32).contiguous();
  double sum = 0, squares = 0, lowest = 0, highest = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const auto value = static_cast<double>(values.data<float>()[i]);
    if (!std::isfinite(value)) continue;
    lowest = count == 0 ? value : std::min(lowest, value);
    highest = count == 0 ? value : std::max(highest, value);
    sum += value;
    squares += value * value;
    ++count;
  }
  const double divisor = std::max<double>(1, static_cast<double>(count)), mean = sum / divisor;
  std::vector<int64_t> histogram(kBins);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const auto value = static_cast<double>(values.data<float>()[i]);
    if (!std::isfinite(value)) continue;
    const double place = highest > lowest ? (value - lowest) / (highest - lowest) * static_cast<double>(kBins) : 0;
    ++histogram[static_cast<size_t>(std::min<int64_t>(kBins - 1, static_cast<int64_t>(place)))];
  }
  Json json{{"name", parameter.name}, {"shape", std::vector<int64_t>(values.shape().begin(), values.shape().end())},
            {"mean", mean},           {"std", std::sqrt(std::max(0.0, squares / divisor - mean * mean))},
            {"min", lowest},          {"max", highest},
            {"histogram", histogram}};
  if (count < values.numel()) json["not_finite"] = values.numel() - count;
  return json;
}

}  // namespace

void add_model_tree(const nn::Module& model, Json& manifest) {
  manifest["tree"] = model.to_string();
  Json modules = Json::array(), parameters = Json::array();
  for (const auto& [path, module] : model.named_modules())
    modules.push_back({{"path", path},
                       {"type", module->type()},
                       {"extra", module->extra()},
                       {"parameters", module->num_parameters()}});
  for (const nn::NamedTensor& parameter : model.named_parameters()) parameters.push_back(parameter_json(parameter));
  manifest["modules"] = modules;
  manifest["parameters"] = parameters;
}

}  // namespace vitrail::explain
