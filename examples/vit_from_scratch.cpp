// SPDX-License-Identifier: Apache-2.0
// A Vision Transformer from its parts: CLS token, position embeddings, masked attention that returns its weights, and
// the classifier on the CLS token; then the same model from the registry (scratch_vit_b16), at a small size.
#include "examples/show.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/tokens.h"

namespace {

using namespace vitrail;

constexpr int64_t kBatch = 2, kPatches = 16, kDim = 48, kHeads = 4;

// [CLS, patch 1, …, patch N] + position embeddings.  The CLS token is one learned vector, repeated for every sample.
// The classifier reads its output.
Tensor embed(const Tensor& patches, const ParamSource& params) {
  const Tensor cls = params.get("class_embedding", {1, 1, kDim}, nn::init::normal(1));
  const Tensor positions = params.get("position_embedding", {1, 1 + kPatches, kDim}, nn::init::normal(1));
  const Tensor tokens = ops::cat({cls.expand({kBatch, 1, kDim}), patches}, 1);
  show::shape("CLS in front of the patches", tokens, {kBatch, 1 + kPatches, kDim});
  return ops::add(tokens, positions);  // broadcasts over the batch
}

// Fixed position encodings (Vaswani et al. 2017, section 3.5): P[i, 2j] = sin(i / 10000^(2j/d)), P[i, 2j+1] = the
// cosine of the same angle.
void sinusoidal() {
  const nn::PositionalEncoding encoding(kDim, /*dropout=*/0.1, /*max_len=*/1000);
  const Tensor position = encoding.forward(Tensor::zeros({1, 1 + kPatches, kDim}));
  show::shape("sinusoidal positions", position, {1, 17, 48});
  show::values("  first values: sine and cosine, with decreasing frequency", position);
}

void masked_attention(const Tensor& x, const ParamSource& params) {
  const nn::MultiheadAttention attention({.embed_dim = kDim, .num_heads = kHeads}, params);
  // A causal mask: each query attends to itself and earlier keys.  Zero means masked.
  const Tensor causal = Tensor::zeros({17, 17}, DType::u8);
  for (int64_t i = 0; i < 17; ++i) {
    for (int64_t j = 0; j <= i; ++j) causal.data<uint8_t>()[i * 17 + j] = 1;
  }
  const auto result = attention.forward(x, x, x, {.attn_mask = causal});
  show::shape("masked attention", result.out, {kBatch, 17, kDim});
  show::shape("weights, averaged over heads", result.weights, {kBatch, 17, 17});
  show::values("  no query attends to a later key", result.weights);
  show::check("the first query attends to itself only", result.weights.data<float>()[0] == 1);

  // A padding mask excludes keys.  With every key masked, the weights are zero, not NaN.
  const Tensor all = Tensor::full({kBatch, 17}, 1, DType::boolean);
  const auto all_masked = attention.forward(x, x, x, {.key_padding_mask = all}, true, /*average_weights=*/false);
  show::shape("weights per head", all_masked.weights, {kBatch, kHeads, 17, 17});
  show::check("with every key masked, the weights are zero", all_masked.weights.data<float>()[5] == 0);
}

// The registry's model with a smaller configuration: 16 patches of 8 × 8, two blocks.
void registered_model() {
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
  show::shape("all tokens after the final norm", tokens, {kBatch, 17, kDim});
  show::shape("CLS token", vit.pool(tokens), {kBatch, kDim});
  show::shape("logits", vit.forward(images), {kBatch, 10});
  show::values("  of two images", vit.forward(images));
}

}  // namespace

int main() {
  RandomParams params(0);
  const Tensor x = embed(Tensor::randn({kBatch, kPatches, kDim}, 1), ParamSource(params));
  sinusoidal();
  masked_attention(x, ParamSource(params, "attention"));
  std::printf("\n");
  registered_model();
  return show::mismatches;
}
