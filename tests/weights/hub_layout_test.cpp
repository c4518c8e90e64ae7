// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/hub_layout.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string error_of(const fs::path& folder) {
  try {
    find_hub_files(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(HubLayout, RoundTrip) {
  const fs::path folder = testing::scratch_folder() / "new" / "model";
  write_hub_folder(folder, "{\"architecture\": \"vit\"}", {{"w", Tensor::full({2}, 3)}});
  const HubFiles files = find_hub_files(folder);
  EXPECT_EQ(*files.config, folder / "config.json");
  EXPECT_FALSE(files.preprocessor_config);
  ASSERT_EQ(files.weights, std::vector{folder / "model.safetensors"});
  EXPECT_EQ(files.open().tensor("w").data<float>()[1], 3.0f);
  EXPECT_EQ(files.open().metadata().at("format"), "pt");
}

TEST(HubLayout, AFolderIsReplacedAsAWhole) {
  const fs::path folder = testing::scratch_folder() / "model";
  write_hub_folder(folder, "{\"a\": 1}", {{"w", Tensor::full({2}, 3)}}, "{\"size\": 4}");
  EXPECT_EQ(read_text_file(folder / "preprocessor_config.json"), "{\"size\": 4}");
  // A folder where the last file belongs, so that nothing is replaced.
  fs::remove(folder / "preprocessor_config.json");
  fs::create_directories(folder / "preprocessor_config.json");
  EXPECT_THROW(write_hub_folder(folder, "{\"a\": 2}", {{"w", Tensor::full({2}, 5)}}, "{\"size\": 6}"), Error);
  EXPECT_EQ(read_text_file(folder / "config.json"), "{\"a\": 1}");
  EXPECT_EQ(find_hub_files(folder).open().tensor("w").data<float>()[0], 3.0f);
  int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) files += entry.is_regular_file();
  EXPECT_EQ(files, 2);  // no temporary ones
}

TEST(HubLayout, ShardsAreOneCheckpoint) {
  const fs::path folder = testing::scratch_folder();
  write_safetensors(folder / "a.safetensors", {{"x", Tensor::full({2}, 1)}});
  write_safetensors(folder / "b.safetensors", {{"y", Tensor::full({2}, 2)}, {"z", Tensor::full({1}, 3)}});
  write(folder / "model.safetensors.index.json",
        R"({"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "b.safetensors"}})");
  const Checkpoint checkpoint = find_hub_files(folder).open();
  EXPECT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.tensor("x").data<float>()[0], 1.0f);
  EXPECT_EQ(checkpoint.tensor("z").data<float>()[0], 3.0f);

  write_safetensors(folder / "b.safetensors", {{"x", Tensor::full({2}, 2)}});
  EXPECT_THROW(find_hub_files(folder).open(), Error) << "a name in two shards";
}

TEST(HubLayout, OneSafetensorsFileOfAnyNameIsTheModel) {
  const fs::path folder = testing::scratch_folder();
  write_safetensors(folder / "open_clip_model.safetensors", {{"x", Tensor::full({2}, 1)}});
  EXPECT_EQ(find_hub_files(folder).weights, std::vector{folder / "open_clip_model.safetensors"});
  fs::rename(folder / "open_clip_model.safetensors", folder / "vit.safetensors");
  EXPECT_EQ(find_hub_files(folder).weights, std::vector{folder / "vit.safetensors"});
  write_safetensors(folder / "other.safetensors", {{"x", Tensor::full({2}, 1)}});
  EXPECT_NE(error_of(folder).find("give the file itself"), std::string::npos) << error_of(folder);
}

TEST(HubLayout, OfSeveralWeightsTheFirstOfTheKnownNamesIsChosen) {
  using Names = std::vector<std::string>;
  const Names known{"model.safetensors",
                    "model.safetensors.index.json",
                    "pytorch_model.bin",
                    "pytorch_model.bin.index.json",
                    "model.pth",
                    "model.pt",
                    "model.npz",
                    "open_clip_model.safetensors",
                    "open_clip_pytorch_model.bin"};
  for (size_t i = 0; i < known.size(); ++i) {
    Names names(known.rbegin(), known.rend() - static_cast<std::ptrdiff_t>(i));
    names.emplace_back("other.safetensors");
    EXPECT_EQ(choose_weights(names), known[i]);
  }
  EXPECT_EQ(choose_weights({}), "");
  EXPECT_EQ(choose_weights({"a.safetensors"}), "a.safetensors");
  EXPECT_EQ(choose_weights({"a.safetensors", "b.bin"}), "a.safetensors");
  EXPECT_EQ(choose_weights({"a.safetensors", "b.safetensors"}), "");
  EXPECT_EQ(choose_weights({"a.bin", "weights.pth"}), "");
}

TEST(HubLayout, InvalidFoldersAndIndicesAreErrors) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_NE(error_of(folder / "absent").find("nothing at this path"), std::string::npos);
  EXPECT_NE(error_of(folder).find("none of them"), std::string::npos);
  const fs::path index = folder / "model.safetensors.index.json";
  const std::pair<const char*, const char*> invalid[] = {
      {"{", "invalid JSON"},
      {"{}", "weight_map"},
      {R"({"weight_map": {}})", "at least one shard"},
      {R"({"weight_map": [[[[[[[[[1]]]]]]]]]})", "nested deeper"},
      {R"({"weight_map": {"x": 1}})", "number"},
      {R"({"weight_map": {"x": "../a.safetensors"}})", "../a.safetensors"},
      {R"({"weight_map": {"x": "/etc/passwd"}})", "/etc/passwd"},
      {R"({"weight_map": {"x": ".."}})", "\"..\""},
      {R"({"weight_map": {"x": "gone.safetensors"}})", "gone.safetensors"}};
  for (const auto& [text, part] : invalid) {
    write(index, text);
    EXPECT_NE(error_of(folder).find(part), std::string::npos) << error_of(folder);
  }
  fs::remove(index);
  fs::create_symlink("/dev/zero", index);
  EXPECT_NE(error_of(folder).find("at most 16777216 bytes"), std::string::npos) << error_of(folder);
}

}  // namespace
}  // namespace vitrail::weights
