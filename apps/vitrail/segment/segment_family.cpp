// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_family.h"

#include "vitrail/models/sam/architectures.h"

namespace vitrail::app {
models::Sam segmentation_model(const NamedModel& model, Device device) {
  if (model.files) return models::load_sam(*model.files);
  RandomParams random(0, DType::f32, device);
  return {models::find_sam_architecture(model.name)->config, ParamSource(random)};
}

}  // namespace vitrail::app
