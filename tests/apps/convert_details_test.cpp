// SPDX-License-Identifier: Apache-2.0
// What a converted folder has beside its weights.
#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

nlohmann::json json_file(const fs::path& path) { return nlohmann::json::parse(content_of(path)); }

TEST(ConvertDetails, AnInt8FolderThatBecomesFp32IsInt8NoMore) {
  const fs::path int8 = scratch_folder() / "int8", fp32 = scratch_folder() / "fp32";
  run({"convert", small_model(), "-o", int8, "--dtype", "int8"});
  ASSERT_TRUE(json_file(int8 / "config.json").contains("int8"));
  for (const char* dtype : {"fp32", "fp16"}) {
    const fs::path folder = fp32 / dtype;
    fs::create_directories(fp32);
    run({"convert", int8, "-o", folder, "--dtype", dtype});
    EXPECT_FALSE(json_file(folder / "config.json").contains("int8")) << dtype;
    EXPECT_EQ(Model(folder).session().precision(), kernels::Precision::fp32) << dtype;
    for (const auto& [name, tensor] : read_golden(folder / "model.safetensors").tensors)
      EXPECT_NE(tensor.dtype(), DType::i8) << name;
  }
}

TEST(ConvertDetails, ADualModelKeepsItsProcessorAndItsScaleInFull) {
  const fs::path source = scratch_folder() / "clip", copy = scratch_folder() / "copy";
  fs::copy(fixture("models/hf_clip"), source, fs::copy_options::recursive);
  const std::string processor = R"({"processor_class": "CLIPProcessor", "image_processor": )" +
                                content_of(source / "preprocessor_config.json") + "}";
  std::ofstream(source / "processor_config.json") << processor;
  run({"convert", source, "-o", copy, "--dtype", "fp16"});
  EXPECT_EQ(content_of(copy / "processor_config.json"), processor);
  EXPECT_EQ(content_of(copy / "vocab.json"), content_of(source / "vocab.json"));
  EXPECT_EQ(content_of(copy / "merges.txt"), content_of(source / "merges.txt"));
  const Golden before = read_golden(source / "model.safetensors"), after = read_golden(copy / "model.safetensors");
  EXPECT_EQ(after["logit_scale"].dtype(), DType::f32);
  EXPECT_TRUE(close(after["logit_scale"], before["logit_scale"], 0));
  size_t halves = 0;
  for (const auto& [name, tensor] : after.tensors) halves += tensor.dtype() == DType::f16 ? 1 : 0;
  EXPECT_GT(halves, 20U);
}

// Nothing is written.
TEST(ConvertDetails, AFolderWithAnotherModelsProcessorIsRefused) {
  const fs::path folder = scratch_folder() / "out";
  const std::string vit = fixture("models/hf_vit"), clip = fixture("models/hf_clip");
  run({"convert", vit, "-o", folder});
  run({"convert", fixture("models/hf_dinov2"), "-o", folder});  // its processor replaces the other
  const std::string before = content_of(folder / "config.json");
  const auto refused = [&](const std::string& model, const std::string& file) {
    const std::string message = refusal({"convert", model, "-o", folder});
    EXPECT_TRUE(contains(message, (folder / file).string() + ": expected no image processor of another model"))
        << message;
    EXPECT_EQ(content_of(folder / "config.json"), before);
  };
  const fs::path bare = scratch_folder();  // without preprocessing
  fs::copy_file(fs::path(small_model()) / "model.safetensors", bare / "model.safetensors");
  nlohmann::json config = json_file(fs::path(small_model()) / "config.json");
  config.erase("pretrained_cfg");
  std::ofstream(bare / "config.json") << config;
  refused(bare, "preprocessor_config.json");
  std::ofstream(folder / "processor_config.json") << "{}";
  refused(vit, "processor_config.json");
  refused(clip, "processor_config.json");
  EXPECT_FALSE(fs::exists(folder / "vocab.json"));
  fs::remove(folder / "processor_config.json");
  run({"convert", clip, "-o", folder});
  run({"convert", small_model(), "-o", folder});  // its crop_pct holds, beside any processor's file
}

}  // namespace
}  // namespace vitrail::testing
