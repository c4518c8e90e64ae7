// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/logit_lens.h"

#include <numeric>

#include "vitrail/models/classifier_internal.h"

namespace vitrail::models {

std::vector<Tensor> logit_lens(const VisionTransformer& model, const Tensor& images) {
  const VisionTransformerConfig& config = model.config();
  require_classifier_of_images(config, "logit lens");
  std::vector<int64_t> layers(static_cast<size_t>(config.depth));
  std::iota(layers.begin(), layers.end(), 0);
  std::vector<Tensor> logits;
  for (const Tensor& tokens : model.intermediates(images, layers, true)) logits.push_back(model.forward_head(tokens));
  return logits;
}

}  // namespace vitrail::models
