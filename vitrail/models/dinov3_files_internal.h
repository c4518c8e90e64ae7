// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of DINOv3's repository say that the name of an architecture does not.
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

constexpr const char* kDinov3Files = "dinov3_hub";  // the key map

// Sets the rotary positions with their periods, which the files store as rounded to bfloat16, and whether q and v have
// biases.
// timm computes the periods in fp32, and has names without biases, because those of some files are zero.
void read_dinov3_files(const weights::Checkpoint& checkpoint, VisionTransformerConfig& vit);

}  // namespace vitrail::models
