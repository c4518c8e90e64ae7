// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the blocks' linear layers read, for those who prepare a model for int8 by pictures.
#include <map>
#include <string>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// By layer of the block ("blocks.0.attn.qkv") the traced point (nn/trace.h) that gives its input.
std::map<std::string, std::string> inputs_of(const models::VisionTransformer& model, int64_t block);

// x [B, N, C] as what an error of a rounded weight is multiplied by, where its rest is multiplied too
// (kernels/gemm/linear.h): 0 for the first `alone` tokens, for the others their difference to the image's
// mean of them.
Tensor centered_patch_tokens(const Tensor& x, int64_t alone);

}  // namespace vitrail::quantize
