// SPDX-License-Identifier: Apache-2.0
// Configurations of models with rotary positions: DINOv3's in transformers' form, and what is written for all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

ModelConfig dinov3(const std::string& fields, const std::string& preprocessor = "") {
  return parse_model_config(R"({"model_type": "dinov3_vit")" + fields + "}", preprocessor, "config.json");
}

std::string dinov3_error(const std::string& fields, const std::string& preprocessor = "") {
  return testing::error_of([&] { dinov3(fields, preprocessor); });
}

TEST(Dinov3Config, AbsentFieldsHaveTransformersDefaults) {
  const VisionTransformerConfig vit = dinov3("").vit;
  EXPECT_EQ(vit.embed_dim, 384);
  EXPECT_EQ(vit.num_heads, 6);
  EXPECT_EQ(vit.reg_tokens, 0);
  EXPECT_EQ(vit.norm_eps, 1e-5);
  EXPECT_EQ(vit.mlp_hidden, 1536);
  EXPECT_EQ(vit.rope_temperature, 100);
  EXPECT_EQ(vit.global_pool, GlobalPool::token);
  EXPECT_EQ(vit.attn_type, AttentionType::eva);
}

// The periods in a file of DINOv3's repository say that its positions are rotary.
TEST(Dinov3Files, HaveRotaryPositionsWhateverTheConfigurationSays) {
  const fs::path folder = testing::scratch_folder(), fixture = testing::fixture("models/dinov3_hub");
  fs::copy(testing::model_fixture("dinov3_hub"), folder);
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(std::ifstream(fixture / "config.json"));
  for (const char* field : {"use_rot_pos_emb", "rope_type", "rope_temperature", "rope_rotate_half"}) {
    ASSERT_EQ(config.at("model_args").erase(field), 1u) << field;
  }
  std::ofstream(folder / "config.json") << config;
  const Tensor images = testing::input_of("dinov3_hub");
  const VisionTransformer model =
      build_model(open_model(folder / testing::model_fixture("dinov3_hub").filename(), testing::options_for(images)));
  EXPECT_TRUE(testing::close(model.forward_features(images),
                             testing::model_of("dinov3_hub", images).forward_features(images), 0));
}

TEST(Dinov3Config, BiasesAreOfAllOrOfQueriesAndValuesOrAbsent) {
  EXPECT_EQ(dinov3(R"(, "key_bias": true)").vit.attn_type, AttentionType::plain);
  EXPECT_FALSE(dinov3(R"(, "query_bias": false, "value_bias": false)").vit.qkv_bias);
  EXPECT_TRUE(testing::contains(dinov3_error(R"(, "value_bias": false)"), "query_bias"));
  EXPECT_TRUE(testing::contains(dinov3_error(R"(, "proj_bias": false)"), "proj_bias"));
  // Each of the eight combinations of biases of q, k and v.
  for (int biases = 0; biases < 8; ++biases) {
    const bool query = (biases & 1) != 0, key = (biases & 2) != 0, value = (biases & 4) != 0;
    const auto field = [](const char* name, bool on) { return str(", \"", name, "_bias\": ", on ? "true" : "false"); };
    const std::string fields = field("query", query) + field("key", key) + field("value", value);
    const bool known = query == value && (query || !key);
    if (!known) {
      EXPECT_TRUE(testing::contains(dinov3_error(fields), "query_bias: expected biases of q, k and v")) << fields;
      continue;
    }
    EXPECT_EQ(dinov3(fields).vit.qkv_bias, query) << fields;
    EXPECT_EQ(dinov3(fields).vit.attn_type, key ? AttentionType::plain : AttentionType::eva) << fields;
  }
}

TEST(Dinov3Config, AGatedMlpIsSwiGlu) {
  EXPECT_TRUE(dinov3(R"(, "use_gated_mlp": true, "hidden_act": "silu")").vit.swiglu_mlp);
  EXPECT_TRUE(testing::contains(dinov3_error(R"(, "use_gated_mlp": true)"), "silu with use_gated_mlp"));
}

TEST(Dinov3Config, ItsProcessorResizesFloats) {
  const std::string name = R"({"image_processor_type": "DINOv3ViTImageProcessorFast", "resample": 2, )";
  const std::string statistics = R"("image_mean": [0.43, 0.411, 0.296], "image_std": [0.213, 0.156, 0.143])";
  const Preprocessing read =
      dinov3("", name + R"("size": {"height": 224, "width": 224}, )" + statistics + "}").preprocessing;
  EXPECT_TRUE(read.resize_floats);
  EXPECT_EQ(*read.mean, (std::vector<double>{0.43, 0.411, 0.296}));
  EXPECT_TRUE(dinov3("", write_preprocessor_config(read)).preprocessing.resize_floats);
  const std::string cropping =
      R"("size": {"height": 256, "width": 256}, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, )";
  EXPECT_TRUE(testing::contains(dinov3_error("", name + cropping + statistics + "}"), "without a crop"));
}

TEST(RotaryConfig, RefusesWhatNoModelHas) {
  const auto error = [](const std::string& fields) {
    return testing::error_of([&] {
      parse_model_config(R"({"architecture": "vit", "model_args": {"use_rot_pos_emb": true, )" + fields + "}}", "",
                         "config.json");
    });
  };
  EXPECT_TRUE(testing::contains(error(R"("qk_norm": true)"), "qk_norm"));
  EXPECT_TRUE(testing::contains(error(R"("rope_type": "mrope")"), "rope_type"));
  EXPECT_TRUE(testing::contains(error(R"("rope_type": "mixed", "rope_rotate_half": true)"), "rope_rotate_half"));
  EXPECT_TRUE(testing::contains(error(R"("rope_temperature": 0)"), "rope_temperature"));
  EXPECT_TRUE(testing::contains(error(R"("rope_periods": [1, -1])"), "rope_periods"));
}

// A model written by vitrail has the native names, and its configuration all that a name of timm implies.
TEST(RotaryConfig, AWrittenModelGivesTheSameLogits) {
  for (const std::string fixture :
       {"timm_dinov3", "dinov3_hub", "hf_dinov3_gated", "timm_eva02_base", "timm_pe_spatial",
        "timm_eva02_clip_enormous", "timm_rope_mixed_ape", "timm_pe_core"}) {
    const OpenedModel opened = open_model(testing::model_fixture(fixture));
    const VisionTransformer model = build_model(opened);
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const nn::NamedTensor& p : model.named_parameters()) tensors.emplace_back(p.name, p.tensor);
    const auto folder = testing::scratch_folder() / fixture;
    weights::write_hub_folder(folder, write_model_config(opened.config), tensors);
    const Tensor input = testing::input_of(fixture);
    EXPECT_TRUE(testing::close(build_model(open_model(folder)).forward(input), model.forward(input), 0)) << fixture;
  }
}

}  // namespace
}  // namespace vitrail::models
