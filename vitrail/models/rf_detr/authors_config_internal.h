// SPDX-License-Identifier: Apache-2.0
#pragma once
// transformers' files for weights of RF-DETR's authors, which come without.
#include <string>

#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

struct RfDetrTexts {
  std::string config, preprocessor;  // config.json, preprocessor_config.json
};

// What the shapes of the weights tell, and what all published models of those shapes have beside (rfdetr's config.py):
// windows, maps, heads and resolution.  Throws Error for weights of another structure.
RfDetrTexts rf_detr_texts_of(const weights::Checkpoint& file);

}  // namespace vitrail::models
