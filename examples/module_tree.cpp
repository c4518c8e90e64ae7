// SPDX-License-Identifier: Apache-2.0
// A module tree with twelve blocks, the conversion of feature maps to token sequences, and attention weights as an
// output.  The blocks are those of a PyTorch ViT that loads Google's checkpoints (jeonsworld/ViT-pytorch).
#include "examples/show.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/patch_embed.h"

namespace {

using namespace vitrail;

// A block of that ViT: separate query, key and value layers, Xavier weights, biases of the MLP from N(0, 1e-6).
nn::BlockConfig block_config() {
  nn::BlockConfig config;
  config.attention = {
      .dim = 768, .num_heads = 12, .qkv_bias = true, .proj_drop = 0.1, .split = true, .init = nn::init::Scheme::xavier};
  config.mlp_hidden = 3072;
  config.mlp_drop = 0.1;
  config.norm_eps = 1e-6;
  return config;
}

}  // namespace

int main() {
  // The blocks differ only in their weights, so the list prints them once.  On the meta device, tensors have shapes but
  // no memory: the 85 million parameters are not allocated.
  RandomParams shapes_only(0, DType::f32, Device::meta);
  nn::ModuleList<nn::Block> layer("layer");
  std::printf("before: %s\n", layer.to_string().c_str());
  for (int64_t i = 0; i < 12; ++i) layer.emplace_back(block_config(), ParamSource(shapes_only, "layer").child(i));
  std::printf("after:  %s\n", layer.to_string().c_str());
  std::printf("%lld parameters, among them:\n", static_cast<long long>(layer.num_parameters()));
  for (const nn::NamedTensor& p : layer.named_parameters()) {
    if (p.name.rfind("0.attn.", 0) == 0) {
      std::printf("  %-24s %s\n", p.name.c_str(), p.tensor.shape().to_string().c_str());
    }
  }

  // The convolution gives a feature map [B, C, h, w].  Flattened, it is a channels-first sequence [B, C, N];
  // transposed, it is [B, N, C], the input of all transformer layers: N tokens of C values.
  std::printf("\n");
  RandomParams params(0);
  const nn::PatchEmbed embed({.flatten = false}, ParamSource(params, "patch_embed"));
  const Tensor feature_map = embed.forward(Tensor::randn({2, 3, 224, 224}, 1));
  const Tensor channels_first = feature_map.flatten(2), tokens = channels_first.transpose(1, 2);
  show::shape("feature map", feature_map, {2, 768, 14, 14});
  show::shape("channels-first sequence", channels_first, {2, 768, 196});
  show::shape("token sequence", tokens, {2, 196, 768});
  const double in_map = feature_map.select(0, 1).select(0, 700).select(0, 3).select(0, 5).item<double>();
  show::check("token 3 · 14 + 5 equals the position at row 3, column 5",
              tokens.select(0, 1).select(0, 3 * 14 + 5).select(0, 700).item<double>() == in_map);

  // One block with weights, which also returns its attention weights.
  std::printf("\n");
  const nn::Block block(block_config(), ParamSource(params, "layer.0"));
  nn::AttentionOutput attention;
  const Tensor out = block.feed_forward(block.attend(tokens, {.need_weights = true}, &attention));
  const Tensor weights = attention.weights;
  show::shape("block", out, {2, 196, 768});
  show::shape("attention weights of 12 heads", weights, {2, 12, 196, 196});
  show::values("head 0, weights of the first tokens", weights);
  show::values("MLP biases from N(0, 1e-6), times 1e6",
               Tensor::from<float>({3}, {1e6F * block.parameter("mlp.fc1.bias").data<float>()[0],
                                         1e6F * block.parameter("mlp.fc1.bias").data<float>()[1],
                                         1e6F * block.parameter("mlp.fc1.bias").data<float>()[2]}));
  return show::mismatches;
}
