// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/registry.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/paths.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {
namespace {

VisionTransformer shapes_of(const VisionTransformerConfig& config) {
  RandomParams meta(0, DType::f32, Device::meta);
  return VisionTransformer(config, ParamSource(meta));
}

TEST(Registry, ArchitecturesHaveTimmsParametersSizesAndHeads) {
  std::ifstream csv(testing::fixture("registry.csv"));
  std::string line, name, parameters, tensors, image, heads;
  std::getline(csv, line);
  int rows = 0;
  while (std::getline(csv, line)) {
    std::istringstream fields(line);
    std::getline(fields, name, ',');
    std::getline(fields, parameters, ',');
    std::getline(fields, tensors, ',');
    std::getline(fields, image, ',');
    std::getline(fields, heads, ',');
    const Architecture* row = find_architecture(name);
    ASSERT_NE(row, nullptr) << name;
    const VisionTransformer model = shapes_of(row->config);
    EXPECT_EQ(model.num_parameters(), std::stoll(parameters)) << name;
    EXPECT_EQ(model.named_parameters().size(), std::stoull(tensors)) << name;
    EXPECT_EQ(row->config.img_size[0], std::stoll(image)) << name;
    EXPECT_EQ(row->config.num_heads, std::stoll(heads)) << name;
    ++rows;
  }
  EXPECT_EQ(rows + 4, static_cast<int>(architectures().size()));  // four are not registered in timm
}

TEST(Registry, ModelsOutsideTimmHaveTheirParameters) {
  const VisionTransformerConfig& cifar = find_architecture("cifar_vit_d384")->config;
  EXPECT_FALSE(cifar.qkv_bias);
  EXPECT_EQ(cifar.norm_eps, 1e-5);
  EXPECT_EQ(cifar.num_heads, 8);
  EXPECT_EQ(shapes_of(cifar).parameter("pos_embed").shape(), (Shape{1, 65, 384}));
  EXPECT_EQ(shapes_of(find_architecture("cifar_vit_d192")->config).parameter("blocks.8.mlp.fc1.weight").shape(),
            (Shape{384, 192}));
  EXPECT_EQ(find_architecture("cifar_vit_d192")->config.num_heads, 12);
  for (const char* name : {"google_vit_b16", "scratch_vit_b16"}) {
    EXPECT_EQ(shapes_of(find_architecture(name)->config).num_parameters(), 86567656);
    EXPECT_EQ(find_architecture(name)->config.num_heads, 12);
  }
}

TEST(Registry, DeitIiiAndClipHaveTheirOptions) {
  const VisionTransformerConfig& deit3 = find_architecture("deit3_small_patch16_224")->config;
  EXPECT_TRUE(deit3.no_embed_class);
  EXPECT_EQ(deit3.init_values, 1e-6);
  EXPECT_EQ(deit3.norm_eps, 1e-6);
  const VisionTransformerConfig& clip = find_architecture("vit_base_patch16_clip_224")->config;
  EXPECT_TRUE(clip.pre_norm);
  EXPECT_EQ(clip.norm_eps, 1e-5);
  EXPECT_EQ(clip.act_layer, kernels::Activation::gelu);
  const VisionTransformerConfig& quick = find_architecture("vit_large_patch14_clip_quickgelu_336")->config;
  EXPECT_EQ(quick.act_layer, kernels::Activation::quick_gelu);
}

TEST(Registry, AMisspelledNameHasLikelyOnes) {
  EXPECT_EQ(find_architecture("vit_bse_patch16_224"), nullptr);
  const auto names = similar_architectures("vit_bse_patch16_224");
  EXPECT_EQ(names.front(), "vit_base_patch16_224");
}

}  // namespace
}  // namespace vitrail::models
