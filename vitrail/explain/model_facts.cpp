// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/model_facts_internal.h"

#include <algorithm>

namespace vitrail::explain {

nlohmann::ordered_json special_tokens(const models::VisionTransformerConfig& config) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  if (config.class_token) names.push_back("class");
  if (config.dist_token) names.push_back("distillation");
  for (int64_t i = 0; i < config.reg_tokens; ++i) names.push_back("register");
  return names;
}

bool is_classifier(const models::VisionTransformerConfig& config) {
  return config.num_classes > 0 && !config.projection_head && config.global_pool != models::GlobalPool::none;
}

std::vector<ChannelScale> pixel_scales(const image::EvalTransform& transform, int64_t channels) {
  std::vector<ChannelScale> scales;
  const double rescale = transform.processor ? transform.processor->rescale : 1.0 / 255;
  for (int64_t i = 0; i < channels; ++i) {
    const auto of = [&](const std::vector<double>& values) {
      return values[std::min(static_cast<size_t>(i), values.size() - 1)];
    };
    scales.push_back({rescale / of(transform.std), -of(transform.mean) / of(transform.std)});
  }
  return scales;
}

}  // namespace vitrail::explain
