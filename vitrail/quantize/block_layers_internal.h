// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks' linear layers as the calibration sees them: their traced inputs, and the value projection inside qkv.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// The blocks of a Vision Transformer that is a module or a part of one.  Refers to the module.
struct VitBlocks {
  VitBlocks(const models::VisionTransformer& model)  // NOLINT(google-explicit-constructor)
      : module(model), config(model.config()), num_head_tokens(model.num_head_tokens()) {}
  VitBlocks(const nn::Module& module, std::string path, const models::VisionTransformerConfig& config)
      : module(module), config(config), path(std::move(path)) {}

  bool is_whole() const { return path.empty(); }  // the Vision Transformer is the module itself
  std::string block(int64_t index) const;         // its path: "backbone.blocks.0"
  Tensor weight(const std::string& layer) const { return module.parameter(layer + ".weight"); }

  const nn::Module& module;
  const models::VisionTransformerConfig& config;
  std::string path = {};  // where the Vision Transformer is in the module: "backbone"; empty: the module itself
  // How many tokens the head reads individually.  None: sessions do not apply a weight correction.
  std::optional<int64_t> num_head_tokens = {};
};

// Those of a network, in which any layer may read the tokens.
std::vector<VitBlocks> vit_blocks(const nn::Module& network);

// Maps each linear layer of a block ("blocks.0.attn.qkv") to the traced point (nn/trace.h) that is its input.
std::map<std::string, std::string> traced_inputs(const VitBlocks& blocks, int64_t block);

// Views of the last third of an attention layer's qkv.
struct ValueProjection {
  Tensor weight;  // [H·d, C], one head after the other
  Tensor bias;    // [H·d]; undefined if qkv has no bias
};
// attention: the layer's path, "blocks.0.attn".
ValueProjection value_projection(const VitBlocks& blocks, const std::string& attention);

// The part of a layer's input x [B, N, C] that the weight correction does not cover (docs/design/quantization.md): the
// first `num_head_tokens` tokens become 0, and each image's mean over the other tokens is subtracted from them.  All of
// it without a weight correction.  f32 and contiguous, as the result is.
Tensor centered_tokens(const Tensor& x, std::optional<int64_t> num_head_tokens);

}  // namespace vitrail::quantize
