// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text part of a dual model, one with an image tower and a text tower: CLIP, SigLIP.
#include <cstdint>
#include <optional>

#include "vitrail/kernels/rowwise/activation.h"

namespace vitrail::models {

// The token whose output is the text's embedding: at the first end-of-text token; at the largest id (old CLIP files and
// OpenCLIP, where the end-of-text token has the largest); the last one (SigLIP).
enum class TextPool : uint8_t { first_eos, largest_id, last };

// What logits mean: one of the texts is right (softmax), or each text is right or not by itself (sigmoid).
enum class DualLoss : uint8_t { softmax, sigmoid };

// How texts are cleaned before they are tokens: not (transformers), or as OpenCLIP's option "clean" says.
enum class TextCleaning : uint8_t { none, lower, whitespace, canonicalize };

struct TextTransformerConfig {
  int64_t vocab_size = 49408;
  int64_t context_length = 77;  // the number of tokens of a text, which have positions
  int64_t embed_dim = 512;
  int64_t depth = 12;
  int64_t num_heads = 8;
  int64_t mlp_hidden = 2048;
  kernels::Activation act_layer = kernels::Activation::quick_gelu;
  double norm_eps = 1e-5;
  std::optional<double> init_values{};  // if set: LayerScale in the blocks
  bool causal = true;                   // a token attends to itself and to earlier ones
  TextPool pool = TextPool::first_eos;
  int64_t eos_token_id = 49407;
  bool class_token = false;      // CoCa: a learned token behind the text is pooled; padding is masked
  int64_t pad_token_id = 0;      // with class_token
  int64_t output_dim = 512;      // width of the embeddings; 0: embed_dim, without a projection
  bool projection_bias = false;  // the projection to output_dim has a bias (SigLIP)
  DualLoss loss = DualLoss::softmax;
  TextCleaning cleaning = TextCleaning::none;
  bool simple_tokenizer = false;  // CLIP's texts are split as by OpenCLIP's SimpleTokenizer, not as by transformers
};

}  // namespace vitrail::models
