// SPDX-License-Identifier: Apache-2.0
#pragma once
// The image transform that a model's configuration asks for.
#include "vitrail/image/decode.h"
#include "vitrail/image/transform.h"
#include "vitrail/models/model_config.h"

namespace vitrail::infer {

// Throws Error that names every setting that is missing and the options that supply them: nothing is guessed.
image::EvalTransform transform_of(const models::Preprocessing& preprocessing, const std::string& where);

// RGB for three channels, grey for one; another number is an Error.
image::ColorMode color_mode_of(int64_t in_chans);

}  // namespace vitrail::infer
