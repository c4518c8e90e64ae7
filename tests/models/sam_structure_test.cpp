// SPDX-License-Identifier: Apache-2.0
// Segment Anything as a whole: types, names and order of its modules and parameters, and how they begin.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/small_sam.h"
#include "tests/support/messages.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/models/sam/tiny_vit.h"

namespace vitrail::models {
namespace {

using testing::error_of;

std::vector<std::string> types_of(const nn::Module& module) {
  std::vector<std::string> types;
  for (const auto& [name, child] : module.named_modules()) types.push_back(name + " " + child->type());
  return types;
}

TEST(SamParts, ModulesHaveTheNamesOfTheirCode) {
  SmallParams params;
  SamConfig config = small_sam();
  config.encoder.blocks.pop_back();
  config.decoder.depth = 1;
  const std::vector<std::string> types = types_of(Sam(config, params.source()));
  const auto has = [&](const std::string& text) { return std::ranges::find(types, text) != types.end(); };
  for (const char* text :
       {" Sam", "image_encoder ImageEncoderViT", "image_encoder.patch_embed PatchEmbed", "image_encoder.blocks.0 Block",
        "image_encoder.blocks.0.attn Attention", "image_encoder.blocks.0.mlp.lin1 Linear",
        "image_encoder.neck.3 LayerNorm", "prompt_encoder PromptEncoder", "prompt_encoder.mask_downscaling.6 Conv2d",
        "mask_decoder MaskDecoder", "mask_decoder.transformer.layers.0 TwoWayAttentionBlock",
        "mask_decoder.transformer.norm_final_attn LayerNorm", "mask_decoder.output_upscaling.3 ConvTranspose2d",
        "mask_decoder.output_hypernetworks_mlps.2 MLP", "mask_decoder.iou_prediction_head.layers.2 Linear"}) {
    EXPECT_TRUE(has(text)) << text;
  }
  config.encoder = tiny_encoder();
  config.encoder.out_chans = 8;
  config.decoder.high_quality = true;
  SmallParams other;
  const Sam tiny(config, other.source());
  const std::vector<std::string> tiny_types = types_of(tiny);
  for (const char* text :
       {"image_encoder TinyViT", "image_encoder.layers.0 BasicLayer", "image_encoder.layers.0.blocks.0 MBConv",
        "image_encoder.layers.1.blocks.1 TinyViTBlock", "image_encoder.layers.1.downsample PatchMerging",
        "image_encoder.layers.2.blocks.0.attn Attention", "mask_decoder.hf_mlp MLP",
        "mask_decoder.compress_vit_feat Sequential", "mask_decoder.embedding_maskfeature.3 Conv2d"}) {
    EXPECT_NE(std::ranges::find(tiny_types, text), tiny_types.end()) << text;
  }
  ASSERT_NE(tiny.hq_head(), nullptr);
  EXPECT_EQ(tiny.hq_head()->type(), "HighQualityHead");
  EXPECT_EQ(tiny.hq_head()->intermediate_width(), 6);
}

// The order of PyTorch, in which optimisers number parameters.
TEST(SamParts, ParametersAreInTheirOrder) {
  SmallParams params;
  SamConfig config = small_sam();
  const Sam sam(config, params.source());
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : sam.named_parameters()) names.push_back(p.name);
  const auto place = [&](const std::string& name) {
    const auto found = std::ranges::find(names, name);
    EXPECT_NE(found, names.end()) << name;
    return found - names.begin();
  };
  const std::vector<std::string> ordered{"image_encoder.pos_embed",
                                         "image_encoder.patch_embed.proj.weight",
                                         "image_encoder.blocks.0.norm1.weight",
                                         "image_encoder.blocks.0.attn.rel_pos_h",
                                         "image_encoder.blocks.0.attn.rel_pos_w",
                                         "image_encoder.blocks.0.attn.qkv.weight",
                                         "image_encoder.blocks.0.attn.proj.bias",
                                         "image_encoder.blocks.0.norm2.weight",
                                         "image_encoder.blocks.0.mlp.lin1.weight",
                                         "image_encoder.blocks.1.norm1.weight",
                                         "image_encoder.neck.0.weight",
                                         "image_encoder.neck.1.weight",
                                         "image_encoder.neck.2.weight",
                                         "image_encoder.neck.3.bias",
                                         "prompt_encoder.pe_layer.positional_encoding_gaussian_matrix",
                                         "prompt_encoder.point_embeddings.0.weight",
                                         "prompt_encoder.point_embeddings.3.weight",
                                         "prompt_encoder.not_a_point_embed.weight",
                                         "prompt_encoder.mask_downscaling.0.weight",
                                         "prompt_encoder.mask_downscaling.1.weight",
                                         "prompt_encoder.mask_downscaling.3.weight",
                                         "prompt_encoder.mask_downscaling.4.weight",
                                         "prompt_encoder.mask_downscaling.6.weight",
                                         "prompt_encoder.no_mask_embed.weight",
                                         "mask_decoder.transformer.layers.0.self_attn.q_proj.weight",
                                         "mask_decoder.transformer.layers.0.norm1.weight",
                                         "mask_decoder.transformer.layers.0.cross_attn_token_to_image.q_proj.weight",
                                         "mask_decoder.transformer.layers.0.norm2.weight",
                                         "mask_decoder.transformer.layers.0.mlp.lin1.weight",
                                         "mask_decoder.transformer.layers.0.norm3.weight",
                                         "mask_decoder.transformer.layers.0.norm4.weight",
                                         "mask_decoder.transformer.layers.0.cross_attn_image_to_token.q_proj.weight",
                                         "mask_decoder.transformer.layers.1.norm1.weight",
                                         "mask_decoder.transformer.final_attn_token_to_image.q_proj.weight",
                                         "mask_decoder.transformer.norm_final_attn.weight",
                                         "mask_decoder.iou_token.weight",
                                         "mask_decoder.mask_tokens.weight",
                                         "mask_decoder.output_upscaling.0.weight",
                                         "mask_decoder.output_upscaling.1.weight",
                                         "mask_decoder.output_upscaling.3.weight",
                                         "mask_decoder.output_hypernetworks_mlps.0.layers.0.weight",
                                         "mask_decoder.output_hypernetworks_mlps.2.layers.2.weight",
                                         "mask_decoder.iou_prediction_head.layers.0.weight"};
  for (size_t i = 1; i < ordered.size(); ++i) EXPECT_LT(place(ordered[i - 1]), place(ordered[i])) << ordered[i];
  EXPECT_EQ(place(ordered.front()), 0);
  EXPECT_EQ(names.size(), params.tensors.size());
}

TEST(SamParts, AnEncoderAloneMakesNoMasks) {
  SmallParams params;
  SamConfig config = small_sam();
  config.has_decoder = false;
  const std::string error =
      ": expected a mask decoder, which makes masks of prompts, got an image encoder alone, which only makes "
      "embeddings";
  const Sam sam(config, params.source());
  EXPECT_EQ(error_of([&] { sam.mask_decoder(); }), "model" + error);
  EXPECT_EQ(error_of([&] { sam.prompt_encoder(); }), "model" + error);
  EXPECT_EQ(error_of([&] { Sam(config, params.source("own")).mask_decoder(); }), "own" + error);
  EXPECT_EQ(sam.hq_head(), nullptr);
  config.has_decoder = true;
  EXPECT_EQ(Sam(config, params.source()).hq_head(), nullptr) << "without the layers of HQ-SAM";
}

// Keeps how each parameter is initialised.
class Initialisers : public ParamProvider {
 public:
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override {
    initialisers[path] = init;
    return Tensor::zeros(shape);
  }
  bool has(const std::string& path) const override { return !path.ends_with("c.bias"); }
  void finish() override {}
  // The root of the mean square of many values.
  double size_of(const std::string& path) const {
    Tensor x = Tensor::empty({20000});
    initialisers.at(path)(x, 5);
    double square = 0;
    for (int64_t i = 0; i < x.numel(); ++i) square += double{x.data<float>()[i]} * x.data<float>()[i];
    return std::sqrt(square / 20000);
  }

  std::map<std::string, Initializer> initialisers;
};

TEST(SamParts, ANewModelBeginsAsTheReferences) {
  SamConfig config = small_sam();
  config.decoder.high_quality = true;
  Initialisers plain;
  const Sam sam(config, ParamSource(plain));
  for (const char* name :
       {"prompt_encoder.pe_layer.positional_encoding_gaussian_matrix", "prompt_encoder.point_embeddings.0.weight",
        "prompt_encoder.point_embeddings.3.weight", "prompt_encoder.not_a_point_embed.weight",
        "prompt_encoder.no_mask_embed.weight", "mask_decoder.iou_token.weight", "mask_decoder.mask_tokens.weight",
        "mask_decoder.hf_token.weight"}) {
    EXPECT_NEAR(plain.size_of(name), 1, 0.05) << name;
  }
  for (const char* name : {"image_encoder.pos_embed", "image_encoder.blocks.0.attn.rel_pos_h",
                           "image_encoder.blocks.1.attn.rel_pos_w", "image_encoder.neck.1.bias"}) {
    EXPECT_EQ(plain.size_of(name), 0) << name;
  }
  EXPECT_EQ(plain.size_of("image_encoder.neck.3.weight"), 1);
  Initialisers mobile;
  const SamTinyEncoder tiny(tiny_encoder(), ParamSource(mobile));
  EXPECT_EQ(mobile.size_of("layers.1.blocks.0.attn.attention_biases"), 0);
  for (const auto& [name, size] : {std::pair("weight", 1.0), std::pair("bias", 0.0), std::pair("running_mean", 0.0),
                                   std::pair("running_var", 1.0)}) {
    EXPECT_EQ(mobile.size_of(std::string("patch_embed.seq.0.bn.") + name), size) << name;
  }
  // A convolution begins uniform within 1 / √n of n inputs, a third of whose square is the variance.
  EXPECT_NEAR(mobile.size_of("patch_embed.seq.0.c.weight"), 1 / std::sqrt(3.0 * 27), 0.003);
  EXPECT_NEAR(mobile.size_of("layers.0.blocks.0.conv1.c.weight"), 1 / std::sqrt(3.0 * 3), 0.01);
  EXPECT_NEAR(mobile.size_of("layers.0.blocks.0.conv2.c.weight"), 1 / std::sqrt(3.0 * 9), 0.006);
}

}  // namespace
}  // namespace vitrail::models
