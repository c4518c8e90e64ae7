// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/logit_lens.h"

#include <numeric>

#include "vitrail/base/error.h"

namespace vitrail::models {

std::vector<Tensor> logit_lens(const VisionTransformer& model, const Tensor& images) {
  const VisionTransformerConfig& config = model.config();
  if (config.num_classes == 0 || config.projection_head || config.global_pool == GlobalPool::none)
    throw Error("logit lens", "a model with a classifier of the pooled features", "one without");
  std::vector<int64_t> layers(static_cast<size_t>(config.depth));
  std::iota(layers.begin(), layers.end(), 0);
  std::vector<Tensor> logits;
  for (const Tensor& tokens : model.intermediates(images, layers, true)) logits.push_back(model.forward_head(tokens));
  return logits;
}

}  // namespace vitrail::models
