// SPDX-License-Identifier: Apache-2.0
// Vision Transformers, alone or as the image tower of a dual model.
#include "apps/vitrail/families/family.h"
#include "apps/vitrail/inspect/inspect_images.h"
#include "vitrail/models/registry.h"

namespace vitrail::app {

ModelFamily image_family() {
  return {.has_architecture = [](const std::string& name) { return models::find_architecture(name) != nullptr; },
          .takes = [](const NamedModel&) { return true; },
          .inspect = inspect_image_model,
          .bench = bench_image_model,
          .evaluate = evaluate_image_model,
          .convert = convert_image_model};
}

}  // namespace vitrail::app
