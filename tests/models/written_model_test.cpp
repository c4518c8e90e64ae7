// SPDX-License-Identifier: Apache-2.0
// Models in timm's form: its architectures, arguments and names of tensors.
#include "vitrail/models/written_model.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::models {
namespace {

WrittenModel written_of(const OpenedModel& opened, const VisionTransformer& model) {
  NamedTensors tensors;
  for (const nn::NamedTensor& p : model.named_parameters()) tensors.emplace_back(p.name, p.tensor);
  return written_model(opened.config, tensors);
}

// The folder that `written` makes gives the same logits.
void expect_same_logits(const WrittenModel& written, const VisionTransformer& model, const std::string& fixture) {
  const auto folder = testing::scratch_folder() / fixture;
  weights::write_hub_folder(folder, written.config_json, written.tensors);
  const Tensor input = testing::input_of(fixture);
  EXPECT_TRUE(testing::close(build_model(open_model(folder)).forward(input), model.forward(input), 0)) << fixture;
}

// The files of these fixtures have timm's names.
TEST(WrittenModel, HasTheTensorsOfTimm) {
  for (const auto& [fixture, name] :
       std::vector<std::array<std::string, 2>>{{"timm_dinov3", "vit_small_patch16_dinov3"},
                                               {"timm_dinov3_qkvb", "vit_small_patch16_dinov3_qkvb"},
                                               {"timm_dinov3_plus", "vit_small_plus_patch16_dinov3_qkvb"},
                                               {"timm_dinov3_7b", "vit_7b_patch16_dinov3"},
                                               {"timm_eva_giant", "eva_giant_patch14_224"},
                                               {"timm_eva02_small", "eva02_small_patch14_336"},
                                               {"timm_eva02_base", "eva02_base_patch14_448"},
                                               {"timm_eva02_clip_base", "eva02_base_patch16_clip_224"},
                                               {"timm_eva02_clip_enormous", "eva02_enormous_patch14_clip_224"},
                                               {"timm_rope_axial", "vit_small_patch16_rope_224"},
                                               {"timm_rope_mixed_ape", "vit_small_patch16_rope_mixed_ape_224"},
                                               {"timm_rope_reg_gap", "vit_medium_patch16_rope_reg1_gap_256"},
                                               {"timm_pe_core", "vit_pe_core_base_patch16_224"},
                                               {"timm_pe_lang", "vit_pe_lang_large_patch14_448"},
                                               {"timm_pe_spatial_gigantic", "vit_pe_spatial_gigantic_patch14_448"},
                                               {"timm_beit", "beit_base_patch16_224"},
                                               {"timm_beit_shared", "beit_base_patch16_224"},
                                               {"timm_token", "vit_tiny_patch16_224"}}) {
    OpenedModel opened = open_model(testing::model_fixture(fixture));
    opened.config.architecture = name;
    const VisionTransformer model = build_model(opened);
    const WrittenModel written = written_of(opened, model);
    EXPECT_EQ(written.timm_name, name) << fixture;
    EXPECT_EQ(nlohmann::json::parse(written.config_json)["architecture"], name) << fixture;
    EXPECT_EQ(written.tensors.size(), opened.checkpoint->tensors().size()) << fixture;
    for (const auto& [key, tensor] : written.tensors) {
      ASSERT_TRUE(opened.checkpoint->has(key)) << fixture << ": " << key;
      EXPECT_TRUE(testing::close(tensor, opened.checkpoint->tensor(key), 0)) << fixture << ": " << key;
    }
    expect_same_logits(written, model, fixture);
  }
}

// The nearest architecture of timm differs from these small models in widths and depth alone.
TEST(WrittenModel, OfAnotherLibraryHasAnArchitectureOfTimm) {
  for (const auto& [fixture, name] :
       std::vector<std::array<std::string, 2>>{{"hf_dinov3", "vit_tiny_patch16_dinov3_qkvb"},
                                               {"hf_dinov3_gated", "vit_tiny_patch16_dinov3_qkvb"},
                                               {"dinov3_hub", "vit_tiny_patch16_dinov3_qkvb"},
                                               {"dinov3_hub_swiglu", "vit_tiny_patch16_dinov3_qkvb"},
                                               {"hf_beit", "beit_base_patch16_224"},
                                               {"hf_data2vec", "beit_base_patch16_224"},
                                               {"hf_dinov2_swiglu", "vit_giant_patch14_dinov2"},
                                               {"dinov2_hub_registers", "vit_small_patch14_reg4_dinov2"},
                                               {"hf_dinov2_registers_model", "vit_small_patch14_reg4_dinov2"},
                                               {"official_beit3", "beit3_base_patch16_224"}}) {
    const OpenedModel opened = open_model(testing::model_fixture(fixture));
    const VisionTransformer model = build_model(opened);
    const WrittenModel written = written_of(opened, model);
    EXPECT_EQ(written.timm_name, name) << fixture;
    expect_same_logits(written, model, fixture);
  }
}

// timm's functions of some names take the size from a field of pretrained_cfg that a folder's config.json lacks.
TEST(WrittenModel, HasTheImageSizeThatTimmWouldNotKnow) {
  for (const auto& [name, size] :
       std::vector<std::pair<std::string, std::string>>{{"vit_base_patch16_384", "384"},
                                                        {"vit_pe_core_tiny_patch16_384", "384"},
                                                        {"vit_base_patch16_224", "null"}}) {
    const ModelConfig config = read_config(name);
    auto json = nlohmann::json::parse(written_model(config, {}).config_json);
    EXPECT_EQ(json["architecture"], name);
    EXPECT_EQ(json["model_args"]["img_size"].dump(), size) << json;
  }
}

// timm has neither this pooling, nor a BEiT without LayerScale, nor a model with such positions or periods.
TEST(WrittenModel, KeepsItsOwnFormWhereTimmHasNoSuchModel) {
  for (const std::string fixture : {"hf_dinov2", "hf_beit_token", "timm_sinusoidal"}) {
    const OpenedModel opened = open_model(testing::model_fixture(fixture));
    const VisionTransformer model = build_model(opened);
    const WrittenModel written = written_of(opened, model);
    EXPECT_EQ(written.timm_name, "") << fixture;
    EXPECT_EQ(written.config_json, write_model_config(opened.config)) << fixture;
    EXPECT_EQ(written.tensors.size(), model.named_parameters().size()) << fixture;
    expect_same_logits(written, model, fixture);
  }
  OpenedModel opened = open_model(testing::model_fixture("timm_dinov3"));
  opened.config.vit.rope_periods = {1, 10.02};  // 10, as bf16 rounds
  const VisionTransformer model = build_model(opened);
  EXPECT_NE(written_of(opened, model).timm_name, "");
  expect_same_logits(written_of(opened, model), model, "timm_dinov3");
  opened.config.vit.rope_periods = {1, 11};
  EXPECT_EQ(written_of(opened, build_model(opened)).timm_name, "");
}

}  // namespace
}  // namespace vitrail::models
