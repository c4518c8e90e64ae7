// SPDX-License-Identifier: Apache-2.0
#pragma once
// SAM 2's part of the configuration.
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/sam/config.h"
#include "vitrail/models/sam/shapes_internal.h"

namespace vitrail::models {

// Widths are those of the checkpoint; stages, heads and windows those of `defaults`, or of the published model with
// these widths and depths.  Throws Error if there is none.
SamEncoderConfig sam2_encoder_config(const SamShapes& shapes, const SamConfigDefaults& defaults);

// What every decoder of SAM 2 has.
void set_sam2_decoder(SamDecoderConfig& decoder, const SamConfigDefaults& defaults);

// Reads the config.json of transformers' Sam2Model or Sam2VideoModel.  Throws Error for settings that no published
// model has.
void read_sam2_config(const JsonFields& file, SamConfigDefaults& defaults);

// Vitrail's own form, of a folder that `vitrail convert` writes.
void write_sam2_config(const SamConfig& config, Json& json);
void read_own_sam2_config(const JsonFields& file, SamConfigDefaults& defaults);

}  // namespace vitrail::models
