// SPDX-License-Identifier: Apache-2.0
// config.json of SigLIP.
#include <gtest/gtest.h>

#include "vitrail/models/model_config.h"

namespace vitrail::models {
namespace {

TEST(SiglipConfig, AbsentFieldsHaveTransformersDefaults) {
  const VisionTransformerConfig vit = parse_model_config(R"({"model_type": "siglip"})", "", "config.json").vit;
  EXPECT_EQ(vit.img_size, (std::array<int64_t, 2>{224, 224}));
  EXPECT_EQ(vit.patch_size, (std::array<int64_t, 2>{16, 16}));
  EXPECT_EQ(vit.embed_dim, 768);
  EXPECT_EQ(vit.mlp_hidden, 3072);
  EXPECT_EQ(vit.norm_eps, 1e-6);
  EXPECT_EQ(vit.act_layer, kernels::Activation::gelu_tanh);
  EXPECT_EQ(vit.global_pool, GlobalPool::map);
  EXPECT_FALSE(vit.class_token);
  EXPECT_FALSE(vit.allow_remainder);
  EXPECT_EQ(vit.num_classes, 0);
}

TEST(SiglipConfig, TheNestedTowerHasItsOwnFields) {
  const VisionTransformerConfig vit =
      parse_model_config(R"({"model_type": "siglip", "vision_config": {"model_type": "siglip_vision_model",
          "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
          "image_size": 384, "patch_size": 14}, "text_config": {"hidden_size": 64}})",
                         "", "config.json")
          .vit;
  EXPECT_EQ(vit.embed_dim, 1152);
  EXPECT_EQ(vit.mlp_hidden, 4304);
  EXPECT_EQ(vit.depth, 27);
  EXPECT_TRUE(vit.allow_remainder) << "384 = 27·14 + 6";
}

TEST(SiglipConfig, AClassifierReadsTheMeanOfTheNormalisedPatches) {
  const VisionTransformerConfig vit =
      parse_model_config(R"({"model_type": "siglip", "architectures": ["SiglipForImageClassification"],
          "id2label": {"0": "cat", "1": "dog", "2": "fox"}})",
                         "", "config.json")
          .vit;
  EXPECT_EQ(vit.global_pool, GlobalPool::avg);
  EXPECT_EQ(vit.fc_norm, false);
  EXPECT_EQ(vit.num_classes, 3);
}

}  // namespace
}  // namespace vitrail::models
