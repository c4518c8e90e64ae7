// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a model's configuration to the transform of its input images.
#include "vitrail/image/decode.h"
#include "vitrail/image/transform.h"
#include "vitrail/models/model_config.h"

namespace vitrail::infer {

// Throws Error that names all missing settings and the options that supply them.  No setting is guessed.
// where: the file or model that the error names.
image::EvalTransform transform_of(const models::Preprocessing& preprocessing, const std::string& where);

// RGB for 3 channels, grey for 1.  Throws Error for another number of channels.
image::ColorMode color_mode_of(int64_t in_chans);

}  // namespace vitrail::infer
