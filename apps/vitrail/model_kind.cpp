// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/model_kind.h"

#include "vitrail/base/error.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::app {

bool is_segmentation_model(const std::string& path) {
  try {
    return models::has_mask_decoder(path);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace vitrail::app
