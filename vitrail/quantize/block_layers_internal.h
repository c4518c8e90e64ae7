// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks' linear layers as the calibration sees them: their traced inputs, and the value projection inside qkv.
#include <map>
#include <string>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// Maps each linear layer of a block ("blocks.0.attn.qkv") to the traced point (nn/trace.h) that is its input.
std::map<std::string, std::string> traced_inputs(const models::VisionTransformer& model, int64_t block);

// Views of the last third of an attention layer's qkv.
struct ValueProjection {
  Tensor weight;  // [H·d, C], one head after the other
  Tensor bias;    // [H·d]; undefined if qkv has no bias
};
// attention: the layer's path, "blocks.0.attn".
ValueProjection value_projection(const models::VisionTransformer& model, const std::string& attention);

// The part of a layer's input x [B, N, C] that the weight correction does not cover (docs/design/quantization.md): the
// first `num_head_tokens` tokens become 0, and each image's mean over the other tokens is subtracted from them.
// f32 and contiguous, as the result is.
Tensor centered_tokens(const Tensor& x, int64_t num_head_tokens);

}  // namespace vitrail::quantize
