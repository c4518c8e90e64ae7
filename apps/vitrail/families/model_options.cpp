// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/families/model_options.h"

#include "apps/vitrail/shell/usage_errors.h"

namespace vitrail::app {

void refuse_model_options(const ModelOptions& options, const std::string& model) {
  const char* given = !options.config.empty()                          ? "--config"
                      : !options.key_map.empty()                       ? "--key-map"
                      : !options.adapter.empty()                       ? "--adapter"
                      : options.image_size                             ? "--image-size"
                      : !options.preset.empty()                        ? "--preset"
                      : !options.mean.empty() || !options.std.empty()  ? "--mean and --std"
                      : !options.interpolation.empty()                 ? "--interpolation"
                      : options.crop_pct || !options.crop_mode.empty() ? "--crop-pct and --crop-mode"
                      : options.tome > 0                               ? "--tome"
                                                                       : nullptr;
  if (given != nullptr)
    throw CLI::ValidationError(given, "does not apply to " + model + ", whose weights and code determine it");
}

}  // namespace vitrail::app
