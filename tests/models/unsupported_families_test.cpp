// SPDX-License-Identifier: Apache-2.0
// Models of families that are known and not supported are refused by the family's name, in each library's format.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"
#include "vitrail/models/unsupported_families_internal.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

std::string family_error(const std::string& json) {
  return testing::error_of([&] { parse_model_config(json, "", "config.json"); });
}

TEST(UnsupportedFamilies, EachRowIsKnownByItsNames) {
  const auto rows = nlohmann::json::parse(unsupported_family_files().front().text);
  EXPECT_GT(rows.size(), 100u);
  for (const auto& row : rows) {
    const std::string description =
        row.at("title").get<std::string>() + ", " + row.value("instead", "which is not supported");
    for (const std::string name : row.at("names")) {
      const std::string prefix = name.front() == '_' ? "vit_tiny" : "";
      EXPECT_EQ(describe_unsupported_family(prefix + name), description) << name;
      EXPECT_EQ(describe_unsupported_family(prefix + name + "_2"), description) << name;
    }
  }
}

TEST(UnsupportedFamilies, AreRefusedInEachFormat) {
  for (const char* json : {R"({"model_type": "swinv2"})", R"({"architecture": "swinv2"})",
                           R"({"model_cfg": {"text_cfg": {}, "vision_cfg": {"timm_model_name": "swinv2"}}})"}) {
    const std::string message = family_error(json);
    EXPECT_TRUE(message.starts_with("config.json: ")) << message;
    EXPECT_TRUE(testing::contains(message, "\"swinv2\": a Swin Transformer V2, which is not supported")) << message;
    EXPECT_TRUE(testing::contains(message, "expected a plain Vision Transformer: ViT, DeiT")) << message;
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
