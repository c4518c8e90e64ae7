// SPDX-License-Identifier: Apache-2.0
// The key map that a model is opened with, and what is said about files that no key map is for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "tests/support/torch_save.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

using testing::contains;
using testing::error_of;

void write_small_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// A key_map in a file given as the configuration is beside this file, not beside the weights.
TEST(KeyMapChoice, APathInAConfigurationIsRelativeToIt) {
  const auto folder = testing::scratch_folder(), configs = folder / "configs";
  std::filesystem::create_directories(configs);
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(testing::model_fixture("timm_token"));
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : checkpoint.names()) tensors.emplace_back("x_" + name, checkpoint.tensor(name));
  weights::write_safetensors(folder / "weights.safetensors", tensors, {});
  std::string config = read_text_file(testing::fixture("models/timm_token/config.json"));
  config.insert(config.find('{') + 1, "\"key_map\": \"map.json\",");
  write_small_file(configs / "config.json", config);
  write_small_file(configs / "map.json", R"~({"name": "right", "rules": [{"from": "x_(.*)", "to": "$1"}]})~");
  write_small_file(folder / "map.json", R"({"name": "wrong", "rules": []})");
  const LoadOptions options{.config = (configs / "config.json").string()};
  EXPECT_EQ(open_model(folder / "weights.safetensors", options).key_map.name(), "right");
}

TEST(KeyMapChoice, AShardAloneNamesTheIndex) {
  const auto folder = testing::scratch_folder();
  std::filesystem::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  weights::write_safetensors(folder / "model-00002-of-00002.safetensors",
                             {{"blocks.1.norm1.bias", Tensor::zeros({18})}}, {});
  const auto error = [&] { return error_of([&] { open_model(folder / "model-00002-of-00002.safetensors"); }); };
  EXPECT_TRUE(contains(error(), "the keys of a known family")) << error();
  const auto index = folder / "model.safetensors.index.json";
  write_small_file(index, R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
                                             "b": "model-00002-of-00002.safetensors"}})");
  EXPECT_TRUE(
      contains(error(), "expected all shards: " + index.string() + ", or its folder, got one of several shards"))
      << error();
}

TEST(KeyMapChoice, ValuesThatAreNoTensorsAreNamed) {
  const auto folder = testing::scratch_folder();
  std::filesystem::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"numpy._core.multiarray", "_reconstruct"}, "numpy._core.multiarray._reconstruct; save torch.from_numpy(value)"},
      {{"torch._utils", "_rebuild_wrapper_subclass"}, "_rebuild_wrapper_subclass; save value.full_tensor() of each"},
      {{"mine", "Weight"}, "an object of mine.Weight"}};
  for (const auto& [global, part] : cases) {
    const std::string value = testing::pickled_call(global.first, global.second);
    const testing::TorchSave save;
    write_small_file(folder / "weights.pth", save.file(testing::pickled_dict({{"patch_embed.proj.weight", value},
                                                                              {"blocks.0.attn.qkv.weight", value},
                                                                              {"blocks.0.norm1.weight", value}})));
    const std::string error = error_of([&] { open_model(folder / "weights.pth"); });
    EXPECT_TRUE(contains(error, "expected tensors, got 3 values that are none, such as blocks.0.attn.qkv.weight"))
        << error;
    EXPECT_TRUE(contains(error, part)) << error;
    EXPECT_FALSE(contains(error, "known family")) << error;
  }
}

}  // namespace
}  // namespace vitrail::models
