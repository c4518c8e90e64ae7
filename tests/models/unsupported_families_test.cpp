// SPDX-License-Identifier: Apache-2.0
// Models of families that are known and not supported are refused by the family's name, in each library's format.
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

std::string family_error(const std::string& json) {
  return testing::error_of([&] { parse_model_config(json, "", "config.json"); });
}

void expect_refused(const std::string& json, const std::string& name, const std::string& family) {
  const std::string message = family_error(json);
  EXPECT_TRUE(testing::contains(message, "\"" + name + "\": " + family + ", which is not supported")) << message;
  EXPECT_TRUE(testing::contains(message, "expected a plain Vision Transformer: ViT, DeiT")) << message;
}

TEST(UnsupportedFamilies, OfTransformersAreRefusedByTheirNames) {
  const std::pair<const char*, const char*> cases[] = {{"swin", "a Swin Transformer"},
                                                       {"swinv2", "a Swin Transformer V2"},
                                                       {"hiera", "a Hiera"},
                                                       {"siglip2", "a SigLIP 2 NaFlex model"},
                                                       {"siglip2_vision_model", "a SigLIP 2 NaFlex model"},
                                                       {"convnextv2", "a ConvNeXt"},
                                                       {"dinov3_convnext", "a DINOv3 ConvNeXt"},
                                                       {"resnet", "a ResNet"},
                                                       {"levit", "a LeViT"},
                                                       {"mobilevit", "a MobileViT"},
                                                       {"sam3_video", "a Segment Anything Model 3"},
                                                       {"vitpose_backbone", "a ViTPose"},
                                                       {"chinese_clip", "a Chinese CLIP"},
                                                       {"altclip", "an AltCLIP"},
                                                       {"mlcd_vision_model", "an MLCD"},
                                                       {"owlvit", "an OWL-ViT detector"},
                                                       {"owlv2", "an OWLv2 detector"},
                                                       {"groupvit", "a GroupViT"},
                                                       {"blip-2", "a BLIP"},
                                                       {"clipseg", "a CLIPSeg"},
                                                       {"depth_anything", "a Depth Anything depth estimator"},
                                                       {"vitdet", "a ViTDet detector"}};
  for (const auto& [type, family] : cases) {
    const std::string json = std::string(R"({"model_type": ")") + type + "\"}";
    expect_refused(json, type, family);
    EXPECT_TRUE(family_error(json).starts_with("config.json: model_type: ")) << family_error(json);
  }
}

TEST(UnsupportedFamilies, OfTimmAreRefusedByTheirNames) {
  const std::pair<const char*, const char*> cases[] = {
      {"swin_base_patch4_window7_224.ms_in1k", "a Swin Transformer"},
      {"swinv2_tiny_window8_256", "a Swin Transformer V2"},
      {"hiera_base_224.mae", "a Hiera"},
      {"naflexvit_base_patch16_gap", "a NaFlex ViT"},
      {"vit_base_patch16_sapiens2.fb", "a Sapiens 2 with grouped queries"},
      {"vit_pwee_patch16_reg1_gap_256", "a ViT with attention and MLP in parallel"},
      {"convnext_base", "a ConvNeXt"},
      {"resnet50.a1_in1k", "a ResNet"},
      {"levit_128", "a LeViT"},
      {"mobilevit_s", "a MobileViT"}};
  for (const auto& [name, family] : cases) {
    const std::string quoted = "\"" + std::string(name) + "\"";
    expect_refused("{\"architecture\": " + quoted + "}", name, family);
    expect_refused(R"({"model_cfg": {"text_cfg": {}, "vision_cfg": {"timm_model_name": )" + quoted + "}}}", name,
                   family);
  }
}

TEST(UnsupportedFamilies, SegmentAnythingHasACommandOfItsOwn) {
  for (const char* config :
       {R"({"model_type": "sam"})", R"({"model_type": "sam_hq"})", R"({"architecture": "segment_anything"})"}) {
    EXPECT_TRUE(testing::contains(family_error(config), "a Segment Anything Model, which `vitrail segment`")) << config;
  }
  EXPECT_TRUE(testing::contains(family_error(R"({"model_type": "sam2"})"), "Model 2, which is not supported"));
  EXPECT_TRUE(testing::contains(family_error(R"({"model_type": "sam3"})"), "Model 3, which is not supported"));
}

// The authors' files have no config.json.
TEST(UnsupportedFamilies, SegmentAnythingIsKnownByItsTensors) {
  for (const char* fixture : {"windows/model.pth", "mobile/model.pth", "transformers/model.safetensors"}) {
    const auto path = testing::fixture("sam") / fixture;
    const std::string message = testing::error_of([&] { open_model(path); });
    EXPECT_TRUE(message.starts_with(path.string() + ": expected a plain Vision Transformer")) << message;
    EXPECT_TRUE(testing::contains(message, "a Segment Anything Model, which `vitrail segment`")) << message;
    // An architecture does not make it a classifier.
    EXPECT_EQ(testing::error_of([&] { open_model(path, {.config = "vit_tiny_patch16_224"}); }), message);
  }
  const auto second = testing::scratch_folder() / "sam2.safetensors";
  weights::write_safetensors(second, {{"sam_mask_decoder.iou_token.weight", Tensor::zeros({1, 4})},
                                      {"sam_mask_decoder.obj_score_token.weight", Tensor::zeros({1, 4})}});
  EXPECT_TRUE(testing::contains(testing::error_of([&] { open_model(second); }), "Model 2, which is not supported"));
}

TEST(UnsupportedFamilies, UnknownNamesAreNoFamily) {
  EXPECT_FALSE(testing::contains(family_error(R"({"model_type": "bert"})"), "not supported"));
  EXPECT_FALSE(testing::contains(family_error(R"({"model_type": "samples"})"), "Segment Anything"));
  EXPECT_TRUE(testing::contains(family_error(R"({"model_type": "pvtv2"})"), "a Pyramid Vision Transformer"));
  EXPECT_FALSE(testing::contains(family_error(R"({"architecture": "vit_bse_patch16_224"})"), "not supported"));
}

}  // namespace
}  // namespace vitrail::models
