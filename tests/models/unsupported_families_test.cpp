// SPDX-License-Identifier: Apache-2.0
// Models of families that are known and not supported are refused by the family's name, in each library's format.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"
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
  EXPECT_TRUE(testing::contains(family_error(R"({"model_type": "sam2"})"), "Model 2, which `vitrail segment`"));
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
}

// A mask decoder of the later generations has the names of the first one's and more; config.json tells them apart.
TEST(UnsupportedFamilies, LaterSegmentAnythingIsNamedForWhatItIs) {
  const auto saved = [](const std::string& folder, const std::string& prefix, const std::string& model_type) {
    const auto path = testing::scratch_folder() / folder / "model.safetensors";
    std::filesystem::create_directories(path.parent_path());
    weights::write_safetensors(path, {{prefix + "mask_decoder.iou_token.weight", Tensor::zeros({1, 4})},
                                      {prefix + "mask_decoder.obj_score_token.weight", Tensor::zeros({1, 4})}});
    if (!model_type.empty())
      std::ofstream(path.parent_path() / "config.json") << R"({"model_type": ")" << model_type << "\"}";
    return path;
  };
  int folder = 0;
  for (const auto& [prefix, model_type, name] :
       std::vector<std::array<std::string, 3>>{{"", "edgetam", "\"edgetam\": an EdgeTAM"},
                                               {"", "sam3_tracker", "\"sam3_tracker\": a Segment Anything Model 3"},
                                               {"tracker_model.", "", "\"sam3\": a Segment Anything Model 3"}}) {
    const auto path = saved(str("model", folder++), prefix, model_type);
    for (const auto& given : {path, path.parent_path()}) {
      const std::string expected = name + ", which is not supported";
      EXPECT_TRUE(testing::contains(testing::error_of([&] { open_model(given); }), expected)) << model_type;
      const std::string error = testing::error_of([&] { load_sam(given); });
      EXPECT_EQ(error, path.string() +
                           ": expected a Segment Anything Model of the first two generations, HQ-SAM or "
                           "MobileSAM, got " +
                           expected);
    }
  }
}

// A part of SAM 2, whatever config.json says.
TEST(UnsupportedFamilies, Sam2NeedsItsImageEncoder) {
  for (const char* prefix : {"sam_", ""}) {
    const auto path = testing::scratch_folder() / (std::string(prefix) + "model.safetensors");
    weights::write_safetensors(path, {{str(prefix, "mask_decoder.iou_token.weight"), Tensor::zeros({1, 4})},
                                      {str(prefix, "mask_decoder.obj_score_token.weight"), Tensor::zeros({1, 4})}});
    const std::string opened = testing::error_of([&] { open_model(path); });
    EXPECT_TRUE(testing::contains(opened, "\"sam2\": a Segment Anything Model 2, which `vitrail segment`")) << opened;
    EXPECT_ERROR(testing::error_of([&] { load_sam(path); }), path.string(), "a mask decoder of SAM 2 without it");
  }
}

TEST(UnsupportedFamilies, UnknownNamesAreNoFamily) {
  EXPECT_FALSE(testing::contains(family_error(R"({"model_type": "bert"})"), "not supported"));
  EXPECT_FALSE(testing::contains(family_error(R"({"model_type": "samples"})"), "Segment Anything"));
  EXPECT_TRUE(testing::contains(family_error(R"({"model_type": "pvtv2"})"), "a Pyramid Vision Transformer"));
  EXPECT_FALSE(testing::contains(family_error(R"({"architecture": "vit_bse_patch16_224"})"), "not supported"));
}

}  // namespace
}  // namespace vitrail::models
