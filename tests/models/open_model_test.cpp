// SPDX-License-Identifier: Apache-2.0
// What opening a model takes from its folder, its options and its weights.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/models/support.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/check_weights.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Pair = std::array<int64_t, 2>;
using testing::contains;
using testing::error_of;

fs::path copy_of(const std::string& fixture) {
  const fs::path folder = testing::scratch_folder() / "copy";
  fs::copy(testing::fixture("models/" + fixture), folder, fs::copy_options::recursive);
  return folder;
}

TEST(FieldSizes, AreThoseOfKeyMaps) {
  VisionTransformerConfig config;
  config.img_size = {30, 40};
  config.patch_size = {6, 8};
  config.in_chans = 2;
  config.num_classes = 11;
  config.embed_dim = 36;
  config.depth = 5;
  config.num_heads = 3;
  config.mlp_ratio = 2.5;
  config.reg_tokens = 4;
  using Sizes = std::map<std::string, int64_t>;
  EXPECT_EQ(field_sizes(config), (Sizes{{"img_size", 30},
                                        {"patch_size", 6},
                                        {"in_chans", 2},
                                        {"num_classes", 11},
                                        {"embed_dim", 36},
                                        {"depth", 5},
                                        {"num_heads", 3},
                                        {"head_dim", 12},
                                        {"mlp_hidden", 90},
                                        {"reg_tokens", 4}}));
  config.head_dim = 7;
  EXPECT_EQ(field_sizes(config).at("head_dim"), 7);
}

TEST(ReadConfig, TakesANameOrAFileAndAnotherSize) {
  const ModelConfig named = read_config("vit_tiny_patch16_224");
  EXPECT_EQ(named.vit.embed_dim, 192);
  EXPECT_FALSE(named.vit.dynamic_img_size);
  EXPECT_EQ(named.preprocessing.input_size, std::nullopt);
  const ModelConfig sized = read_config("vit_tiny_patch16_224", Pair{64, 32});
  EXPECT_TRUE(sized.vit.dynamic_img_size);
  EXPECT_EQ(sized.vit.img_size, (Pair{224, 224})) << "the grid of the model's positions";
  EXPECT_EQ(sized.preprocessing.input_size, (Pair{64, 32}));
  EXPECT_ERROR(error_of([] {
                 read_config("vit_tiny_patch16_224", Pair{64, 40});
               }),
               "vit_tiny_patch16_224: image size", "40 (near are 32 and 48)");
  const fs::path folder = copy_of("hf_vit");
  EXPECT_EQ(read_config((folder / "config.json").string()).preprocessing.rule, ResizeRule::huggingface)
      << "with the file beside it";
  fs::remove(folder / "preprocessor_config.json");
  EXPECT_EQ(read_config((folder / "config.json").string()).preprocessing.rule, ResizeRule::timm);
}

TEST(ImageSize, IsAMultipleOfThePatchUpToALimit) {
  const auto error = [](int64_t side, const char* name = "vit_tiny_patch16_224") {
    try {
      read_config(name, Pair{16, side});
    } catch (const Error& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_EQ(error(16), "");
  EXPECT_EQ(error(65536), "");
  const std::string expected =
      "vit_tiny_patch16_224: image size: expected multiples of the patch size 16, at most 65536, got ";
  EXPECT_EQ(error(15), expected + "15 (near are 16 and 32)");
  EXPECT_EQ(error(17), expected + "17 (near are 16 and 32)");
  EXPECT_EQ(error(47), expected + "47 (near are 32 and 48)");
  EXPECT_EQ(error(0), expected + "0 (near are 16 and 32)");
  EXPECT_EQ(error(-16), expected + "-16 (near are 16 and 32)");
  EXPECT_EQ(error(65535), expected + "65535 (near are 65520 and 65536)");
  EXPECT_EQ(error(65552), expected + "65552 (near are 65520 and 65536)") << "both are within the limit";
  EXPECT_EQ(error(1 << 20), expected + "1048576 (near are 65520 and 65536)");
}

// A model that ignores a remainder takes any side.
TEST(ImageSize, OfAModelWithARemainderIsAny) {
  const fs::path file = testing::scratch_folder() / "config.json";
  write_file(file, R"({"architecture": "vit_tiny_patch16_224", "model_args": {"allow_remainder": true}})");
  EXPECT_EQ(read_config(file.string(), Pair{17, 33}).preprocessing.input_size, (Pair{17, 33}));
  EXPECT_THROW(read_config(file.string(), Pair{0, 33}), Error);
}

TEST(OpenModel, OptionsReplaceWhatFilesSay) {
  const fs::path model = testing::fixture("models/timm_token");
  EXPECT_EQ(open_model(model).config.preprocessing.crop_pct, 0.9);
  LoadOptions options;
  options.preprocessing.crop_pct = 0.5;
  options.preprocessing.interpolation = "box";
  options.image_size = {{16, 24}};
  const OpenedModel opened = open_model(model, options);
  EXPECT_EQ(opened.config.preprocessing.crop_pct, 0.5);
  EXPECT_EQ(opened.config.preprocessing.interpolation, "box");
  EXPECT_EQ(opened.config.preprocessing.input_size, (Pair{16, 24}));
  EXPECT_TRUE(opened.config.vit.dynamic_img_size);
  EXPECT_EQ(opened.folder, model);
  EXPECT_EQ(open_model(model / "model.safetensors").folder, model);
  options = {};
  options.preprocessing.crop_pct = 2;
  EXPECT_TRUE(contains(error_of([&] { open_model(model, options); }), "--crop-pct: expected a fraction"));
  // A preset fills in the size of the images that the model was trained on.
  const fs::path folder = copy_of("timm_token");
  write_file(folder / "config.json", R"({"architecture": "vit_tiny_patch16_224", "num_classes": 10, "model_args":
      {"img_size": 32, "patch_size": 8, "embed_dim": 18, "depth": 2, "num_heads": 2}})");
  options = {};
  options.preprocessing.preset = "cifar10";
  EXPECT_EQ(open_model(folder, options).config.preprocessing.input_size, (Pair{32, 32}));
}

TEST(OpenModel, WithoutAConfigurationSaysHowToGiveOne) {
  const fs::path folder = copy_of("timm_token");
  fs::rename(folder / "config.json", folder / "other.json");
  const std::string file = (folder / "model.safetensors").string();
  EXPECT_ERROR(error_of([&] { open_model(file); }), file, "neither");
  EXPECT_EQ(open_model(file, {.config = (folder / "other.json").string()}).config.vit.embed_dim, 18);
  EXPECT_EQ(open_model(file, {.config = "vit_tiny_patch16_224"}).config.vit.embed_dim, 192);
  EXPECT_TRUE(contains(error_of([&] { build_model(open_model(file, {.config = "vit_tiny_patch16_224"})); }), file));
  EXPECT_TRUE(
      error_of([] { open_model("/absent/model"); })
          .starts_with("/absent/model: expected a model's folder or weights file, or the name of a bundled model "
                       "or one of the hub, got nothing there"));
}

TEST(OpenModel, KeyMapsOfTheConfigurationAreInTheModelsFolder) {
  const fs::path folder = copy_of("timm_token");
  std::vector<std::pair<std::string, Tensor>> tensors;
  const auto checkpoint = ModelFiles(folder).checkpoint();
  for (const std::string& name : checkpoint->names())
    tensors.emplace_back("x_" + name, checkpoint->tensor(name).clone());
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  const std::string config = read_text_file(folder / "config.json");
  const auto with_map = [&](const std::string& map) {
    write_file(folder / "config.json", config.substr(0, config.rfind('}')) + ", \"key_map\": " + map + "}");
    return open_model(folder).key_map.name();
  };
  const std::string rules = R"~({"name": "mine", "rules": [{"from": "x_(.*)", "to": "$1"}]})~";
  EXPECT_EQ(with_map(rules), "mine");
  write_file(folder / "map.json", rules);
  EXPECT_EQ(with_map("\"map.json\""), "mine");
  EXPECT_EQ(with_map("\"" + (folder / "map.json").string() + "\""), "mine");
  EXPECT_EQ(with_map("\"huggingface_vit\""), "huggingface_vit") << "a built-in name";
  EXPECT_EQ(open_model(folder, {.key_map = "mae"}).key_map.name(), "mae") << "an option has precedence";
}

// A processor of transformers 5 comes before the older file; one without an image processor does not count.
TEST(OpenModel, ProcessorsOfTwoFormsHaveTheirOrder) {
  const fs::path folder = copy_of("hf_vit");
  const auto mean = [&] { return open_model(folder).config.preprocessing.mean; };
  const auto before = mean();
  write_file(folder / "processor_config.json", R"({"image_processor": {"image_processor_type": "ViTImageProcessor",
                                              "image_mean": [0.1, 0.2, 0.3]}})");
  EXPECT_EQ(mean(), (std::vector<double>{0.1, 0.2, 0.3}));
  for (const char* other : {R"({"image_processor": "x"})", R"({"image_processor": null})", "[1]", "{}"}) {
    write_file(folder / "processor_config.json", other);
    EXPECT_EQ(mean(), before) << other;
  }
  write_file(folder / "processor_config.json", "{");
  EXPECT_TRUE(error_of([&] {
                open_model(folder);
              }).starts_with((folder / "processor_config.json").string() + ": expected JSON"));
}

TEST(BuildModel, ErrorsHaveTheFileInFrontOnce) {
  const fs::path folder = copy_of("timm_token"), file = folder / "model.safetensors";
  const std::string config = read_text_file(folder / "config.json");
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string changed = config;
    changed.replace(changed.find(from), from.size(), to);
    write_file(folder / "config.json", changed);
    const std::string message = error_of([&] { build_model(open_model(folder)); });
    EXPECT_EQ(error_of([&] { check_weights(open_model(folder)); }), message);
    return message;
  };
  EXPECT_ERROR(error_with("\"num_heads\": 2", "\"num_heads\": 4"), file.string() + ": blocks.0.attn",
               "width 18 and 4 heads");
  const std::string misshapen = error_with("\"embed_dim\": 18", "\"embed_dim\": 20");
  EXPECT_TRUE(misshapen.starts_with(file.string())) << misshapen;
  EXPECT_EQ(misshapen.find(file.string(), 1), std::string::npos) << misshapen;
}

TEST(TextTower, NumbersOfADualModelAreNumbers) {
  const fs::path folder = copy_of("hf_clip");
  const auto checkpoint = weights::Checkpoint::open(testing::model_fixture("hf_clip"));
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : checkpoint.names()) {
    tensors.emplace_back(name, name == "logit_scale" ? Tensor::zeros({2}) : checkpoint.tensor(name));
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  EXPECT_ERROR(error_of([&] { build_text_tower(open_model(folder)); }),
               (folder / "model.safetensors").string() + ": logit_scale", "[2]");
}

// The folder may come from anywhere, and a pipe in it would be waited for.  A user's own --config may be one.
TEST(OpenModel, TakesNoPipeFromItsFolder) {
  const fs::path folder = copy_of("timm_token"), config = folder / "config.json", moved = folder / "moved.json";
  const std::string text = read_text_file(config);
  fs::rename(config, moved);
  fs::create_symlink("moved.json", config);
  EXPECT_EQ(open_model(folder).config.vit.depth, read_config(moved).vit.depth) << "a link to a file";
  fs::remove(config);
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  EXPECT_ERROR(error_of([&] { open_model(folder); }), config.string(), "something else");
  std::thread writer([&] { std::ofstream(config) << text; });
  EXPECT_EQ(read_config(config).vit.depth, read_config(moved).vit.depth);
  writer.join();
  fs::remove(config);
  fs::rename(moved, config);
  ASSERT_EQ(::mkfifo((folder / "preprocessor_config.json").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_of([&] { open_model(folder); }), "preprocessor_config.json: expected a regular file"));
}

}  // namespace
}  // namespace vitrail::models
