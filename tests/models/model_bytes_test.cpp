// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/model_bytes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/models/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

constexpr size_t kMaxBytes = 1 << 24;

std::string text_of(const fs::path& file) { return fs::exists(file) ? read_text_file(file) : ""; }

// The files of a fixture's folder in memory.
ModelBytes bytes_of(const std::string& fixture) {
  const fs::path folder = testing::model_fixture(fixture).parent_path();
  return {.weights = weights::FileBytes::hold(read_file(folder / "model.safetensors", kMaxBytes), "weights"),
          .config = text_of(folder / "config.json"),
          .preprocessor = text_of(folder / "preprocessor_config.json")};
}

TEST(ModelBytes, GiveTheModelOfTheSameFiles) {
  for (const char* name : {"timm_token", "hf_vit", "hf_clip", "hf_beit", "hf_siglip"}) {
    const OpenedModel from_files = open_model(testing::model_fixture(name)), from_bytes = open_model(bytes_of(name));
    EXPECT_EQ(write_model_config(from_bytes.config), write_model_config(from_files.config)) << name;
    EXPECT_EQ(from_bytes.config.text.has_value(), from_files.config.text.has_value()) << name;
    EXPECT_EQ(write_preprocessor_config(from_bytes.config.preprocessing),
              write_preprocessor_config(from_files.config.preprocessing))
        << name;
    const Tensor images = testing::input_of(name);
    const Tensor got = build_model(from_bytes).forward(images), want = build_model(from_files).forward(images);
    ASSERT_EQ(got.shape(), want.shape()) << name;
    EXPECT_EQ(std::memcmp(got.raw(), want.raw(), static_cast<size_t>(want.numel()) * sizeof(float)), 0) << name;
  }
}

// The owner of the bytes lives as long as the model; without one, any address will do.
TEST(ModelBytes, AreViewedWhereTheyAre) {
  ModelBytes bytes = bytes_of("timm_token");
  const Tensor images = testing::input_of("timm_token"), want = build_model(open_model(bytes)).forward(images);
  const std::weak_ptr<void> owner = bytes.weights.owner;
  {
    const VisionTransformer model = build_model(open_model(bytes));
    bytes.weights.owner.reset();
    EXPECT_FALSE(owner.expired());
    EXPECT_EQ(std::memcmp(model.forward(images).raw(), want.raw(), static_cast<size_t>(want.numel()) * 4), 0);
  }
  EXPECT_TRUE(owner.expired());
  const auto file = read_file(testing::model_fixture("timm_token"), kMaxBytes);
  std::vector<std::byte> shifted(file.size() + 1);
  std::copy(file.begin(), file.end(), shifted.begin() + 1);
  bytes.weights = {.data = std::span(shifted).subspan(1), .owner = nullptr, .where = "weights"};
  EXPECT_EQ(std::memcmp(build_model(open_model(bytes)).forward(images).raw(), want.raw(),
                        static_cast<size_t>(want.numel()) * 4),
            0);
}

TEST(ModelBytes, TheConfigurationMayBeAnArchitecturesName) {
  ModelBytes bytes = bytes_of("timm_token");
  bytes.config.clear();
  EXPECT_EQ(open_model(bytes, {.config = "vit_tiny_patch16_224"}).config.vit.embed_dim, 192);
  EXPECT_ERROR(error_of([&] { open_model(bytes); }), "weights", "neither");
}

TEST(ModelBytes, ErrorsNameWhatTheyAreOf) {
  ModelBytes bytes = bytes_of("timm_token");
  bytes.config = "{";
  EXPECT_TRUE(error_of([&] { open_model(bytes); }).starts_with("config.json")) << error_of([&] { open_model(bytes); });
  bytes.config = R"({"architecture": "vit_tiny_patch16_224", "key_map": "../map.json"})";
  EXPECT_ERROR(error_of([&] { open_model(bytes); }), "config.json: key_map", "\"../map.json\"");
  bytes = bytes_of("timm_token");
  bytes.weights.data = bytes.weights.data.first(bytes.weights.data.size() - 1);
  EXPECT_TRUE(error_of([&] { open_model(bytes); }).starts_with("weights: "));
  bytes.weights.data = {};
  EXPECT_ERROR(error_of([&] { open_model(bytes); }), "weights", "an empty file");
  bytes.weights = weights::FileBytes::map(testing::fixture("sam/windows/model.pth"));
  EXPECT_ERROR(error_of([&] { open_model(bytes); }), bytes.weights.where, "pytorch zip");
}

// Meta's checkpoints need no configuration, and that of the current folder is not theirs.
TEST(ModelBytes, MayBeSegmentAnything) {
  const fs::path file = testing::fixture("sam/transformers/model.safetensors");
  ModelBytes bytes{.weights = weights::FileBytes::map(file)};
  bytes.weights.where = "weights";
  ASSERT_TRUE(is_segment_anything(open_checkpoint(bytes)));
  const fs::path folder = testing::scratch_folder(), before = fs::current_path();
  write_file(folder / "config.json", "{");
  fs::current_path(folder);
  const auto parameters = load_sam(bytes).image_encoder().named_parameters();
  fs::current_path(before);
  const auto expected = load_sam(file).image_encoder().named_parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(parameters[i].name, expected[i].name);
    ASSERT_EQ(parameters[i].tensor.shape(), expected[i].tensor.shape());
    const Tensor got = parameters[i].tensor.contiguous(), want = expected[i].tensor.contiguous();
    EXPECT_EQ(std::memcmp(got.raw(), want.raw(), static_cast<size_t>(want.numel()) * 4), 0) << expected[i].name;
  }
  bytes.config = "{";
  EXPECT_TRUE(error_of([&] { load_sam(bytes); }).starts_with("config.json"));
  bytes.config.clear();
  bytes.preprocessor = R"({"do_resize": false})";
  EXPECT_TRUE(error_of([&] { load_sam(bytes); }).starts_with("preprocessor_config.json"));
}

}  // namespace
}  // namespace vitrail::models
