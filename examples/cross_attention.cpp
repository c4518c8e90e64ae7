// SPDX-License-Identifier: Apache-2.0
// The layers of Segment Anything's mask decoder (Kirillov et al. 2023): cross-attention with downsampled channels,
// MLPBlock and LayerNorm2d; and the effect of permute, transpose and view on a tensor's layout.
#include "examples/show.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/mlp.h"

namespace {

using namespace vitrail;

// A tensor is a strided view of shared memory: swapping axes swaps strides and copies nothing.
void layouts() {
  const Tensor tokens = Tensor::from<float>({1, 2, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});  // [b, n, c]
  const Tensor split = tokens.view({1, 2, 3, 2});  // c = 3 heads of 2: the last axis is split
  const Tensor heads = split.transpose(1, 2);      // [b, heads, n, c per head]
  const Tensor keys = heads.permute({0, 1, 3, 2});
  show::shape("tokens", tokens, {1, 2, 6});
  show::shape("view: split into heads", split, {1, 2, 3, 2});
  show::shape("transpose(1, 2): heads first", heads, {1, 3, 2, 2});
  show::shape("permute(0, 1, 3, 2): keys transposed", keys, {1, 3, 2, 2});
  std::printf("%-34s %s, then %s\n", "strides before and after transpose", split.strides().to_string().c_str(),
              heads.strides().to_string().c_str());
  show::check("all views share the same memory", keys.storage() == tokens.storage());
  show::values("head 0, its tokens", heads.select(1, 0));
  show::values("head 0, transposed", keys.select(1, 0));
  try {
    heads.view({1, 2, 6});
    show::check("view throws if it would need a copy", false);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  const Tensor merged = heads.transpose(1, 2).reshape({1, 2, 6});  // recombines the heads
  show::check("transpose and reshape restore the tokens",
              merged.select(0, 0).select(0, 1).select(0, 5).item<double>() == 11);
}

}  // namespace

int main() {
  layouts();
  RandomParams params(0);
  const ParamSource source(params);

  // 5 query tokens (SAM's prompt) attend to 64 × 64 image positions.  Attention downsamples 256 channels to 128.
  std::printf("\n");
  const nn::DownsampledAttention attention({.embedding_dim = 256, .num_heads = 8, .downsample_rate = 2},
                                           source.child("cross_attn_token_to_image"));
  std::printf("%s\n", attention.to_string().c_str());
  const Tensor prompt = Tensor::randn({1, 5, 256}, 1), image = Tensor::randn({1, 4096, 256}, 2);
  const Tensor attended = attention.forward(prompt, image, image);
  show::shape("q: prompt tokens", prompt, {1, 5, 256});
  show::shape("k and v: image tokens", image, {1, 4096, 256});
  show::shape("out: one row per query", attended, {1, 5, 256});
  show::values("its first values", attended);

  std::printf("\n");
  const nn::Mlp mlp({.in_features = 256, .hidden_features = 2048, .sam_names = true}, source.child("mlp"));
  show::shape("MLPBlock: lin2(gelu(lin1(x)))", mlp.forward(attended), {1, 5, 256});
  show::shape("  lin1.weight", mlp.parameter("lin1.weight"), {2048, 256});

  // LayerNorm2d normalises over the channels at each position of a feature map [B, C, H, W].
  const nn::LayerNorm2d norm(32, source.child("norm"));
  const Tensor normed = norm.forward(Tensor::randn({1, 32, 6, 6}, 3));
  show::shape("LayerNorm2d", normed, {1, 32, 6, 6});
  double mean = 0, square = 0;
  for (int64_t c = 0; c < 32; ++c) {
    const double x = normed.select(0, 0).select(0, c).select(0, 4).select(0, 2).item<double>();
    mean += x / 32;
    square += x * x / 32;
  }
  std::printf("channels at position (4, 2): mean %.1e, variance %.6f\n", mean, square - mean * mean);
  show::check("the channels are normalised", std::abs(mean) < 1e-5 && std::abs(square - 1) < 1e-3);
  return show::mismatches;
}
