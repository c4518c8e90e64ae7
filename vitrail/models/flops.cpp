// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/flops.h"

#include "vitrail/ops/recorder.h"

namespace vitrail::models {

double forward_flops(const VisionTransformer& model, const Shape& images) {
  const ops::Recorder recorder;
  Tensor shares;
  const Tensor tokens = model.forward_features(Tensor::empty(images, DType::f32, Device::meta), &shares);
  model.forward_head(tokens, shares);
  return ops::flops_of(recorder.operations());
}

}  // namespace vitrail::models
