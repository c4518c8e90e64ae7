// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/registry.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/paths.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {
namespace {

VisionTransformer shapes_of(const VisionTransformerConfig& config) {
  RandomParams meta(0, DType::f32, Device::meta);
  return VisionTransformer(config, ParamSource(meta));
}

// A line of registry.csv: what timm's model has under the name.
struct TimmModel {
  std::string name, parameters, tensors, image, heads, prefix, eps, activation, layer_scale, pool;
};

std::vector<TimmModel> timm_models() {
  std::ifstream csv(testing::fixture("registry.csv"));
  std::string line;
  std::getline(csv, line);
  std::vector<TimmModel> models;
  while (std::getline(csv, line)) {
    std::istringstream fields(line);
    TimmModel m;
    for (std::string* field : {&m.name, &m.parameters, &m.tensors, &m.image, &m.heads, &m.prefix, &m.eps, &m.activation,
                               &m.layer_scale, &m.pool}) {
      std::getline(fields, *field, ',');
    }
    models.push_back(m);
  }
  return models;
}

TEST(Registry, ArchitecturesHaveTimmsParametersSizesAndHeads) {
  std::set<std::string> names;
  for (const TimmModel& timm : timm_models()) {
    const Architecture* row = find_architecture(timm.name);
    ASSERT_NE(row, nullptr) << timm.name;
    const VisionTransformer model = shapes_of(row->config);
    EXPECT_EQ(model.num_parameters(), std::stoll(timm.parameters)) << timm.name;
    EXPECT_EQ(model.named_parameters().size(), std::stoull(timm.tensors)) << timm.name;
    EXPECT_EQ(row->config.img_size[0], std::stoll(timm.image)) << timm.name;
    EXPECT_EQ(row->config.num_heads, std::stoll(timm.heads)) << timm.name;
    EXPECT_EQ(model.num_prefix_tokens(), std::stoll(timm.prefix)) << timm.name;
    names.insert(timm.name);
  }
  for (const Architecture& row : architectures()) EXPECT_EQ(row.in_timm, names.contains(row.name)) << row.name;
}

// What shapes do not show.
TEST(Registry, ArchitecturesHaveTimmsArithmetic) {
  using kernels::Activation;
  const std::map<std::string, Activation> activations{{"GELU", Activation::gelu},
                                                      {"GELUTanh", Activation::gelu_tanh},
                                                      {"QuickGELU", Activation::quick_gelu},
                                                      {"SiLU", Activation::gelu}};  // SwiGLU ignores act_layer
  const std::map<std::string, GlobalPool> pools{
      {"token", GlobalPool::token}, {"avg", GlobalPool::avg}, {"map", GlobalPool::map}};
  for (const TimmModel& timm : timm_models()) {
    const VisionTransformerConfig& config = find_architecture(timm.name)->config;
    EXPECT_EQ(config.norm_eps, std::stod(timm.eps)) << timm.name;
    EXPECT_EQ(config.act_layer, activations.at(timm.activation)) << timm.name;
    EXPECT_EQ(config.mlp_layer != MlpLayer::mlp || config.swiglu_mlp, timm.activation == "SiLU") << timm.name;
    EXPECT_EQ(config.init_values.value_or(0), std::stod(timm.layer_scale)) << timm.name;
    EXPECT_EQ(config.global_pool, pools.at(timm.pool)) << timm.name;
  }
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

TEST(Registry, ATagOfTimmsWeightsIsNoPartOfTheName) {
  EXPECT_EQ(find_architecture("vit_base_patch16_224.augreg_in21k"), find_architecture("vit_base_patch16_224"));
  EXPECT_EQ(find_architecture("vit_base_patch16_224.safetensors"), nullptr);
  // OpenAI's weights were trained with the quick GELU; timm runs them with GELU under the name without quickgelu.
  EXPECT_EQ(find_architecture("vit_base_patch32_clip_224.openai")->config.act_layer, kernels::Activation::gelu);
}

TEST(Registry, SimilarNamesShareTheWordsOfAName) {
  EXPECT_EQ(find_architecture("vit_bse_patch16_224"), nullptr);
  EXPECT_EQ(similar_architectures("vit_bse_patch16_224").front(), "vit_base_patch16_224");
  EXPECT_EQ(similar_architectures("vit_large_patch14_clip_384").front(), "vit_large_patch14_clip_224");
  EXPECT_EQ(similar_architectures("so400m_siglip_gap_448").front(), "vit_so400m_patch14_siglip_gap_448");
  EXPECT_EQ(similar_architectures(std::string(100000, 'x')).size(), 3U);
}

}  // namespace
}  // namespace vitrail::models
