// SPDX-License-Identifier: Apache-2.0
// A whole Vision Transformer from its parts (document 004): CLS token, positions, masked attention with returned
// weights, the classifier on CLS; and then the library's own model of that document, at a small size.
#include "examples/show.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/tokens.h"

namespace {

using namespace vitrail;

constexpr int64_t kBatch = 2, kPatches = 16, kDim = 48, kHeads = 4;

// [CLS, patch 1, …, patch N] + positions.  The CLS token is one learned vector, repeated for every sample; it gathers
// what the classifier will read.
Tensor embedded(const Tensor& patches, const ParamSource& params) {
  const Tensor cls = params.get("class_embedding", {1, 1, kDim}, nn::init::normal(1));
  const Tensor positions = params.get("position_embedding", {1, 1 + kPatches, kDim}, nn::init::normal(1));
  const Tensor tokens = ops::cat({cls.expand({kBatch, 1, kDim}), patches}, 1);
  show::shape("CLS in front of the patches", tokens, {kBatch, 1 + kPatches, kDim});
  return ops::add(tokens, positions);  // broadcasts over the batch
}

// Positions that are computed instead of learned: P[i, 2j] = sin(i / 10000^(2j/d)), P[i, 2j+1] = cos(same).
void sinusoidal() {
  const nn::PositionalEncoding encoding(kDim, /*dropout=*/0.1, /*max_len=*/1000);
  const Tensor position = encoding.forward(Tensor::zeros({1, 1 + kPatches, kDim}));
  show::shape("sinusoidal positions", position, {1, 17, 48});
  show::values("  the first of them: sin and cos, slower to the right", position);
}

void masked_attention(const Tensor& x, const ParamSource& params) {
  const nn::MultiheadAttention attention({.embed_dim = kDim, .num_heads = kHeads}, params);
  // Zero means ignore: here a query sees itself and what came before, as in a decoder.
  const Tensor causal = Tensor::zeros({17, 17}, DType::u8);
  for (int64_t i = 0; i < 17; ++i) {
    for (int64_t j = 0; j <= i; ++j) causal.data<uint8_t>()[i * 17 + j] = 1;
  }
  const auto result = attention.forward(x, x, x, {.attn_mask = causal});
  show::shape("masked attention", result.out, {kBatch, 17, kDim});
  show::shape("weights, averaged over heads", result.weights, {kBatch, 17, 17});
  show::values("  each query sees no later key", result.weights);
  show::check("the first query sees itself alone", result.weights.data<float>()[0] == 1);

  // A padding mask says which keys are no keys at all.  With every key masked the weights are zero, never NaN.
  const Tensor all = Tensor::full({kBatch, 17}, 1, DType::boolean);
  const auto nothing = attention.forward(x, x, x, {.key_padding_mask = all}, true, /*average_weights=*/false);
  show::shape("weights per head", nothing.weights, {kBatch, kHeads, 17, 17});
  show::check("with every key masked the weights are zero", nothing.weights.data<float>()[5] == 0);
}

// The document's model, found in the registry and made smaller: 16 patches of 8 × 8, two blocks.
void whole_model() {
  models::VisionTransformerConfig config = models::find_architecture("scratch_vit_b16")->config;
  config.img_size = {32, 32};
  config.patch_size = {8, 8};
  config.embed_dim = kDim;
  config.num_heads = kHeads;
  config.depth = 2;
  config.num_classes = 10;
  RandomParams params(0);
  const models::VisionTransformer vit(config, ParamSource(params));
  std::printf("%s\n", vit.to_string().c_str());

  const Tensor images = Tensor::randn({kBatch, 3, 32, 32}, 2);
  const Tensor tokens = vit.forward_features(images);
  show::shape("all tokens after the last norm", tokens, {kBatch, 17, kDim});
  show::shape("CLS alone", vit.pool(tokens), {kBatch, kDim});
  show::shape("logits", vit.forward(images), {kBatch, 10});
  show::values("  of two images", vit.forward(images));
}

}  // namespace

int main() {
  RandomParams params(0);
  const Tensor x = embedded(Tensor::randn({kBatch, kPatches, kDim}, 1), ParamSource(params));
  sinusoidal();
  masked_attention(x, ParamSource(params, "attention"));
  std::printf("\n");
  whole_model();
  return show::mismatches;
}
