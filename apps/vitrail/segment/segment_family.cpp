// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_family.h"

#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/models/sam/architectures.h"

namespace vitrail::app {
models::Sam segmentation_model(const NamedModel& model, Device device) {
  if (model.files) return models::load_sam(*model.files);
  RandomParams random(0, DType::f32, device);
  return {models::find_sam_architecture(model.name)->config, ParamSource(random)};
}

void check_segmentation_options(const ModelOptions& model) {
  const char* given = !model.config.empty()                        ? "--config"
                      : !model.key_map.empty()                     ? "--key-map"
                      : model.image_size                           ? "--image-size"
                      : !model.preset.empty()                      ? "--preset"
                      : !model.mean.empty() || !model.std.empty()  ? "--mean and --std"
                      : !model.interpolation.empty()               ? "--interpolation"
                      : model.crop_pct || !model.crop_mode.empty() ? "--crop-pct and --crop-mode"
                                                                   : nullptr;
  if (given != nullptr)
    throw CLI::ValidationError(given, "does not apply to Segment Anything, whose weights and code determine it");
}

}  // namespace vitrail::app
