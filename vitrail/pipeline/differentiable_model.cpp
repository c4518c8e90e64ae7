// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/differentiable_model.h"

#include "vitrail/base/error.h"

namespace vitrail::pipeline {

const models::VisionTransformer& DifferentiableModel::model() const {
  const std::lock_guard lock(mutex_);
  if (!model_) {
    const std::string& path = opened_.checkpoint->path();
    models::require_classifier(opened_.config, path);
    if (opened_.config.int8)
      throw Error(path, "weights in fp32 or 16 bits, for gradients: the model that this one was converted from",
                  "int8");
    model_ = std::make_unique<models::VisionTransformer>(models::build_model(opened_));
  }
  return *model_;
}

}  // namespace vitrail::pipeline
