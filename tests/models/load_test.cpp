// SPDX-License-Identifier: Apache-2.0
// Opening models: paths, names and checkpoints as training scripts leave them.
#include "vitrail/models/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <regex>

#include "tests/models/support.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "tests/support/torch_save.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/check_weights.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

std::string load_error(const fs::path& path, const LoadOptions& options = {}) {
  try {
    build_model(open_model(path, options));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\n  expected: " << part;
}

Tensors tensors_of(const std::string& fixture_name) {
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(testing::model_fixture(fixture_name));
  Tensors tensors;
  for (const weights::TensorInfo& info : checkpoint.tensors()) {
    tensors.emplace_back(info.name, checkpoint.tensor(info.name).to(DType::f32));
  }
  return tensors;
}

void expect_same_values(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  const Tensor a = actual.contiguous(), b = expected.contiguous();
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.numel()) * sizeof(float)), 0);
}

// A folder with the fixture's config.json and the tensors under a prefix beside other tensors.
TEST(Load, ModelsUnderAPrefixGiveTheSameLogits) {
  const Tensor images = testing::input_of("timm_token");
  const Tensor expected = testing::model_of("timm_token").forward(images);
  for (const std::string prefix : {"net.", "model.", "backbone.", "model._orig_mod.", "ema_model.module."}) {
    const fs::path folder = testing::scratch_folder();
    fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
    testing::TorchSave save;
    Tensors tensors{{"criterion.weight", Tensor::zeros({3})}};
    for (const auto& [name, tensor] : tensors_of("timm_token")) tensors.emplace_back(prefix + name, tensor);
    write_file(folder / "epoch=1.ckpt", save.file(testing::pickled_dict({{"state_dict", save.state_dict(tensors)}})));
    const testing::Warnings warnings;
    expect_same_values(build_model(open_model(folder / "epoch=1.ckpt")).forward(images), expected);
    ASSERT_EQ(warnings.messages.size(), 1u);
    expect_part(warnings.messages[0], "left out 1 tensor beside the model's: \"criterion.weight\"");
  }
}

// A classifier of one's own has its head beside the backbone; self-supervised training and segmentors have others.
TEST(Load, TheHeadBesideABackboneIsTheModelsIfItFits) {
  const Tensor images = testing::input_of("timm_token");
  const Tensor expected = testing::model_of("timm_token").forward(images);
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  const Tensors company{{"n_averaged", Tensor::zeros({1})},
                        {"dino_head.last_layer.weight", Tensor::zeros({4, 2})},
                        {"decode_head.conv_seg.weight", Tensor::zeros({3, 2})}};
  for (const std::string prefix : {"backbone.", "net."}) {
    Tensors tensors = company;
    for (const auto& [name, tensor] : tensors_of("timm_token")) {
      tensors.emplace_back(name.starts_with("head.") ? name : prefix + name, tensor);
    }
    weights::write_safetensors(folder / "model.safetensors", tensors, {});
    for (const auto& key_map : {std::optional<std::string>(), std::optional<std::string>("timm")}) {
      const testing::Warnings warnings;
      const LoadOptions options{.key_map = key_map};
      expect_same_values(build_model(open_model(folder, options)).forward(images), expected);
      ASSERT_EQ(warnings.messages.size(), 1u) << prefix;
      expect_part(warnings.messages[0], "left out 3 tensors beside the model's: ");
    }
  }
}

// transformers' ViTMAEForPreTraining: the encoder has the keys of ViT, and there is a decoder.
TEST(Load, TheEncoderOfVitMaeIsAVit) {
  const fs::path folder = testing::scratch_folder();
  Tensors tensors{{"decoder.mask_token", Tensor::zeros({1, 1, 4})},
                  {"decoder.decoder_norm.weight", Tensor::zeros({4})}};
  for (const auto& [name, tensor] : tensors_of("hf_vit")) {
    if (!name.starts_with("classifier.")) tensors.emplace_back(name, tensor);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  std::ifstream original(testing::fixture("models/hf_vit/config.json"));
  std::string config{std::istreambuf_iterator<char>(original), {}};
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"vit\"", "\"vit_mae\""},
                                 {"ViTForImageClassification", "ViTMAEForPreTraining"}}) {
    ASSERT_NE(config.find(from), std::string::npos) << config;
    config.replace(config.find(from), from.size(), to);
  }
  write_file(folder / "config.json", config);
  const VisionTransformer mae = build_model(open_model(folder));
  EXPECT_EQ(mae.config().num_classes, 0);
  const Tensor images = testing::input_of("hf_vit");
  expect_same_values(mae.forward_features(images), testing::model_of("hf_vit").forward_features(images));
}

// Checkpoints of repositories whose models are timm's under other names or beside other tensors.
struct Repository {
  std::string key_map, fixture;
  std::vector<std::pair<const char*, const char*>> renamed;  // regular expressions over timm's names
  std::vector<std::string> beside;
};

const std::vector<Repository>& repositories() {
  static const std::vector<Repository> table{
      {"mae",
       "timm_token",
       {},
       {"mask_token", "decoder_pos_embed", "decoder_embed.weight", "decoder_blocks.0.norm1.bias"}},
      {"ibot", "timm_dynamic", {}, {"masked_embed"}},
      {"masked_image_model", "timm_token", {}, {"mask_token"}},
      {"deit3", "timm_layer_scale", {{"ls([12])\\.gamma", "gamma_$1"}}, {}},
      {"mmpretrain",
       "timm_token",
       {{"patch_embed\\.proj", "patch_embed.projection"},
        {"^norm", "ln1"},
        {"blocks\\.(\\d)\\.norm", "layers.$1.ln"},
        {"blocks\\.(\\d)\\.mlp\\.fc1", "layers.$1.ffn.layers.0.0"},
        {"blocks\\.(\\d)\\.mlp\\.fc2", "layers.$1.ffn.layers.1"},
        {"blocks", "layers"},
        {"^head", "head.layers.head"}},
       {}}};
  return table;
}

TEST(Load, CheckpointsOfRepositoriesGiveTheSameLogits) {
  for (const Repository& repository : repositories()) {
    const fs::path folder = testing::scratch_folder();
    fs::copy(testing::fixture("models/" + repository.fixture + "/config.json"), folder / "config.json");
    Tensors tensors;
    for (auto [name, tensor] : tensors_of(repository.fixture)) {
      for (const auto& [from, to] : repository.renamed) name = std::regex_replace(name, std::regex(from), to);
      tensors.emplace_back(name, tensor);
    }
    for (const std::string& name : repository.beside) tensors.emplace_back(name, Tensor::zeros({1, 1, 4}));
    weights::write_safetensors(folder / "model.safetensors", tensors, {});
    const OpenedModel opened = open_model(folder);
    EXPECT_EQ(opened.key_map.name(), repository.key_map);
    const Tensor images = testing::input_of(repository.fixture);
    expect_same_values(build_model(opened).forward(images), testing::model_of(repository.fixture).forward(images));
  }
}

TEST(Load, NamesOfNoFamilyAskForAKeyMap) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  Tensors tensors;
  for (auto [name, tensor] : tensors_of("timm_token")) tensors.emplace_back("own_" + name, tensor);
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  expect_part(load_error(folder), "; give a key map for others, got ");
}

// A path of the user is relative to the current folder, one of config.json to the model's.
TEST(Load, KeyMapsAreFoundFromWhereTheyAreNamed) {
  const fs::path folder = testing::scratch_folder() / "model", maps = folder.parent_path() / "maps";
  fs::create_directories(folder);
  fs::create_directories(maps);
  fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  Tensors tensors;
  for (const auto& [name, tensor] : tensors_of("timm_token")) tensors.emplace_back("x_" + name, tensor);
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  const std::string map = R"~({"name": "mine", "rules": [{"from": "x_(.*)", "to": "$1"}]})~";
  write_file(maps / "map.json", map);
  const std::string relative = fs::relative(maps / "map.json", fs::current_path()).string();
  ASSERT_FALSE(fs::path(relative).is_absolute());
  for (const std::string& choice : {relative, (maps / "map.json").string(), map}) {
    EXPECT_EQ(load_error(folder, {.key_map = choice}), "no error") << choice;
    EXPECT_EQ(open_model(folder, {.key_map = choice}).key_map.name(), "mine") << choice;
  }
}

TEST(Load, ATextTowerOfAnotherLibraryIsAnErrorForTextsAlone) {
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "open_clip_config.json",
             R"({"model_cfg": {"embed_dim": 8, "text_cfg": {"hf_model_name": "roberta-base"},
      "vision_cfg": {"timm_model_name": "vit_tiny_patch16_224", "timm_pool": "", "timm_proj": "linear",
                     "vitrail_args": {"img_size": 32, "patch_size": 8, "embed_dim": 18, "depth": 2, "num_heads": 2}}}})");
  Tensors tensors{{"logit_scale", Tensor::zeros({1})},
                  {"text.transformer.embeddings.word.weight", Tensor::zeros({4, 2})}};
  for (const auto& [name, tensor] : tensors_of("timm_token")) {
    const bool head = name.starts_with("head");
    if (name != "head.bias")
      tensors.emplace_back(head ? "visual.head.proj.weight" : "visual.trunk." + name,
                           head ? Tensor::zeros({8, 18}) : tensor);
  }
  weights::write_safetensors(folder / "open_clip_model.safetensors", tensors, {});
  const OpenedModel opened = open_model(folder);
  EXPECT_EQ(build_model(opened).forward(testing::input_of("timm_token")).size(1), 8);
  try {
    build_text_tower(opened);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    expect_part(error.what(), "a text tower of another library");
  }
}

TEST(Load, AnIndexOfShardsIsAModel) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  const Tensors all = tensors_of("timm_token");
  const auto half = all.begin() + 5;
  weights::write_safetensors(folder / "1.safetensors", {all.begin(), half}, {});
  weights::write_safetensors(folder / "2.safetensors", {half, all.end()}, {});
  const fs::path index = folder / "model.safetensors.index.json";
  write_file(index, R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  const Tensor images = testing::input_of("timm_token");
  expect_same_values(build_model(open_model(index)).forward(images), testing::model_of("timm_token").forward(images));
}

// A hub folder may have the files of transformers and of OpenCLIP; each library's weights go with its configuration.
TEST(Load, OpenClipsWeightsGoWithItsConfiguration) {
  const fs::path folder = testing::scratch_folder();
  for (const auto& entry : fs::directory_iterator(testing::fixture("models/open_clip"))) {
    const std::string name = entry.path().filename().string();
    fs::copy(entry.path(), folder / name);
  }
  write_file(folder / "config.json", R"({"model_type": "vit"})");
  const Tensor images = testing::input_of("open_clip");
  expect_same_values(build_model(open_model(folder)).forward(images), testing::model_of("open_clip").forward(images));
}

// One tensor per parameter, with the layers as first axis, below "params/img/" as in the files of SigLIP.
TEST(Load, BigVisionsStackedLayersGiveTheSameLogits) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("models/google_npz/config.json"), folder / "config.json");
  Tensors tensors{{"params/txt/head/bias", Tensor::zeros({3})}};
  std::map<std::string, std::vector<Tensor>> layers;
  const std::regex layer("encoderblock_\\d/");
  for (const auto& [name, tensor] : tensors_of("google_npz")) {
    const std::string stacked = "params/img/" + std::regex_replace(name, layer, "encoderblock/");
    layers[stacked].push_back(tensor);  // in the order of the layers
  }
  for (const auto& [name, parts] : layers) {
    const bool stacked = name.find("encoderblock/") != std::string::npos;
    Shape shape = parts.front().shape();
    if (!stacked) {
      tensors.emplace_back(name, parts.front());
      continue;
    }
    std::vector<int64_t> extents{static_cast<int64_t>(parts.size())};
    extents.insert(extents.end(), shape.begin(), shape.end());
    Tensor all = Tensor::empty(Shape(std::span<const int64_t>(extents)));
    for (size_t i = 0; i < parts.size(); ++i) all.select(0, static_cast<int64_t>(i)).copy_(parts[i]);
    tensors.emplace_back(name, all);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  const Tensor images = testing::input_of("google_npz");
  const testing::Warnings warnings;
  expect_same_values(build_model(open_model(folder)).forward(images), testing::model_of("google_npz").forward(images));
}

// torch.hub's DINO and DINOv2 interpolate positions their own way, which a configuration by name does not say.
TEST(Load, TheFamilyOfTheWeightsSaysHowPositionsAreInterpolated) {
  for (const auto& [fixture, architecture] : {std::pair{"dinov2_hub", "vit_small_patch14_dinov2"},
                                              std::pair{"dinov2_hub_registers", "vit_small_patch14_reg4_dinov2"}}) {
    const fs::path config = testing::scratch_folder() / "named.json";
    write_file(
        config,
        str("{\"architecture\": \"", architecture, "\", \"model_args\": {\"img_size\": 16, \"patch_size\": 4, ",
            "\"embed_dim\": 18, \"depth\": 2, \"num_heads\": 3, \"mlp_ratio\": 2.0, ", "\"dynamic_img_size\": true}}"));
    const testing::Golden golden =
        testing::read_golden(testing::fixture(str("models/", fixture, "/golden.safetensors")));
    const VisionTransformer model =
        build_model(open_model(testing::model_fixture(fixture), {.config = config.string()}));
    EXPECT_TRUE(testing::close(model.forward_features(golden["input2"]), golden["tokens2"], 1e-5, 1e-5)) << fixture;
  }
  // What the file says has precedence.
  const VisionTransformer model = testing::model_of("dinov2_hub_registers");
  EXPECT_TRUE(model.config().pos_interp.antialias);
}

TEST(Load, AWeightThatIsNotFiniteIsAnError) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  Tensors tensors = tensors_of("timm_token");
  Tensor broken = Tensor::empty(tensors.back().second.shape());
  broken.copy_(tensors.back().second);
  broken.data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  tensors.back().second = broken;
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  expect_part(load_error(folder), tensors.back().first);
  expect_part(load_error(folder), "got a NaN or an infinity at element 1");
}

TEST(Load, PathsThatMayNotBeLookedAtAreErrors) {
  const fs::path folder = testing::scratch_folder(), model = testing::model_fixture("timm_token");
  const std::string long_name(300, 'x');
  fs::create_symlink("loop", folder / "loop");
  fs::create_directory(folder / "model");
  fs::create_symlink("config.json", folder / "model/config.json");
  fs::copy(model, folder / "model");
  const auto expect_unopened = [&](const std::string& error, const fs::path& path, const std::string& reason) {
    expect_part(error, path.string() + ": cannot be opened: " + reason);
  };
  expect_unopened(load_error(folder / long_name), folder / long_name, "File name too long");
  expect_unopened(load_error(long_name + "/model"), long_name + "/model", "File name too long");
  expect_unopened(load_error(folder / "loop"), folder / "loop", "Too many levels of symbolic links");
  expect_unopened(load_error(folder / "model"), folder / "model/config.json", "Too many levels of symbolic links");
  for (const auto& [name, reason] : {std::pair<std::string, std::string>{long_name, "File name too long"},
                                     {(folder / "loop").string(), "Too many levels"},
                                     {(folder / "absent").string(), "No such file"}}) {
    expect_unopened(load_error(model, {.config = name}), name, reason);
    expect_unopened(load_error(model, {.key_map = name}), name, reason);
  }
}

TEST(Load, TheFolderOfATrainingRunMeansItsModel) {
  const fs::path run = testing::scratch_folder(), model = run / "model";
  fs::copy(testing::model_fixture("timm_avg").parent_path(), model, fs::copy_options::recursive);
  write_file(run / "summary.json", "{}");
  EXPECT_EQ(open_model(run).config.vit.embed_dim, open_model(model).config.vit.embed_dim);
  fs::copy_file(model / "config.json", run / "config.json");  // a folder with a model of its own
  expect_part(load_error(run), "model.safetensors");
}

TEST(Load, MissingModelsAreNamedForWhatTheyAre) {
  for (const char* url :
       {"https://example.org/model.pth", "http://x/y", "s3://bucket/model", "HTTPS://EXAMPLE.ORG/a"}) {
    expect_part(load_error(url), "got a URL; download the files first");
  }
  for (const char* other : {"://x", "a b://x", "a/b://x"}) {
    EXPECT_EQ(load_error(other).find("a URL"), std::string::npos) << other;
  }
  expect_part(load_error("deit_tiny_patch16_224.fb_in1k"), "timm/deit_tiny_patch16_224.fb_in1k on the hub");
  for (const char* path : {"./absent/model", "/absent/model", "a/b/c"}) {
    EXPECT_EQ(load_error(path).find("HF_HUB_OFFLINE"), std::string::npos) << path;
  }
  expect_part(load_error("vit_base_patch16_224"), "an architecture without weights");
  expect_part(load_error("vit_bse_patch16_224"), "architectures of such a name: vit_base_patch16_224");
  expect_part(load_error("VIT_BASE_PATCH16_22"), "vit_base_patch16_224");
  const fs::path folder = testing::scratch_folder();
  write_file(folder / "weights.safetensors", "x");
  expect_part(load_error(folder / "weights.safetensor"), (folder / "weights.safetensors").string());
}

// Names of models and of --config are refused as those in configurations are.
TEST(Load, NamesOfFamiliesThatAreNotSupportedAreRefused) {
  const fs::path model = testing::model_fixture("timm_token");
  for (const auto& [name, family] : {std::pair("swin_tiny_patch4_window7_224", "a Swin Transformer, which is not"),
                                     {"resnet50", "a ResNet, which is not"},
                                     {"vit_dwee_patch16_reg1_gap_256", "a ViT with differential attention"},
                                     {"sam3", "a Segment Anything Model 3, which is not"}}) {
    expect_part(load_error(name), str("got nothing there; the name is of ", family));
    expect_part(load_error(model, {.config = name}), str("got \"", name, "\": ", family));
    EXPECT_EQ(load_error(str("./folder/", name)).find("the name is of"), std::string::npos) << "a path";
    EXPECT_EQ(load_error(str(name, ".pth")).find("the name is of"), std::string::npos) << "a file";
  }
}

TEST(Load, AnUnknownNameGivesArchitecturesOfItsFamily) {
  const fs::path model = testing::model_fixture("timm_token");
  expect_part(load_error("vit_large_patch14_clip_384"), "architectures of such a name: vit_large_patch14_clip_224");
  expect_part(load_error(model, {.config = "vit_large_patch14_clip_384"}), "(like vit_large_patch14_clip_224, ");
  EXPECT_EQ(load_error("weights").find("architectures"), std::string::npos) << "a name without a word of one";
}

// transformers 5 saves the image processor of a dual model in the file of all processors.
TEST(Load, TheImageProcessorMayBeInProcessorConfig) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::model_fixture("hf_clip").parent_path(), folder, fs::copy_options::recursive);
  const std::string processor = read_text_file(folder / "preprocessor_config.json");
  fs::remove(folder / "preprocessor_config.json");
  write_file(folder / "processor_config.json", R"({"image_processor": {"image_processor_type": "CLIPImageProcessor",
                                              "image_mean": [0.1, 0.2, 0.3]}})");
  EXPECT_EQ(open_model(folder).config.preprocessing.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  write_file(folder / "processor_config.json", R"({"processor_class": "CLIPProcessor"})");
  write_file(folder / "preprocessor_config.json", processor);
  EXPECT_EQ(open_model(folder).config.preprocessing.mean,
            open_model(testing::model_fixture("hf_clip")).config.preprocessing.mean);
}

// For files of several models; `good` is the fixture's.
struct SeveralModels {
  explicit SeveralModels(const char* extension = "pth")
      : folder(testing::scratch_folder()), file(folder / (std::string("weights.") + extension)) {
    fs::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
    for (const auto& [name, tensor] : good) {
      wider.emplace_back(name, Tensor::zeros(name == "head.weight" ? Shape{7, tensor.size(1)} : tensor.shape()));
      if (!name.starts_with("blocks.1.")) partial.emplace_back(name, Tensor::zeros(tensor.shape()));
      zeros.emplace_back(name, Tensor::zeros(tensor.shape()));
    }
  }
  void expect_good() const {
    const Tensor images = testing::input_of("timm_token");
    expect_same_values(build_model(open_model(file)).forward(images), testing::model_of("timm_token").forward(images));
  }
  fs::path folder, file;
  Tensors good = tensors_of("timm_token"), wider, partial, zeros;
};

// Each is better by its name, but does not fit the configuration.
TEST(Load, TheFirstOfSeveralModelsThatFitsIsUsed) {
  const SeveralModels models;
  for (const auto& [key, other, reason] : {std::tuple("model_ema", models.partial, "missing ("),
                                           std::tuple("ema", models.wider, "misshapen (1): head.weight")}) {
    testing::TorchSave save;
    write_file(models.file, save.file(testing::pickled_dict({{"model", save.state_dict(models.good)},
                                                             {key, save.state_dict(other)},
                                                             {"last", save.state_dict(models.zeros)}})));
    const testing::Warnings warnings;
    models.expect_good();
    ASSERT_EQ(warnings.messages.size(), 2u) << key;
    EXPECT_TRUE(warnings.messages[0].starts_with(
        str(models.file.string(), ": does not use the weights under \"", key, "\": the tensors do not fit")));
    expect_part(warnings.messages[0], reason);
    expect_part(warnings.messages[1],
                str("uses the weights under \"model\"; the file also has weights under \"", key, "\", \"last\""));
  }
}

TEST(Load, TheFirstOfSeveralPrefixesThatFitsIsUsed) {
  const SeveralModels models("safetensors");
  Tensors all;
  for (const auto& [name, tensor] : models.good) all.emplace_back("student." + name, tensor);
  for (const auto& [name, tensor] : models.wider) all.emplace_back("teacher." + name, tensor);
  weights::write_safetensors(models.file, all, {});
  const testing::Warnings warnings;
  models.expect_good();
  ASSERT_EQ(warnings.messages.size(), 3u);
  expect_part(warnings.messages[0], "does not use the weights under \"teacher.\": the tensors do not fit the model");
  expect_part(warnings.messages[1],
              "uses the weights under \"student.\"; the file also has weights under \"teacher.\"");
  expect_part(warnings.messages[2], "left out");
}

TEST(Load, IfNoneOfSeveralModelsFitsTheErrorIsOfTheFirst) {
  const SeveralModels models;
  testing::TorchSave save;
  write_file(models.file, save.file(testing::pickled_dict(
                              {{"model", save.state_dict(models.wider)}, {"ema", save.state_dict(models.partial)}})));
  const testing::Warnings warnings;
  expect_part(load_error(models.file), "missing (");
  ASSERT_EQ(warnings.messages.size(), 1u);
  expect_part(warnings.messages[0], "uses the weights under \"ema\"");
}

// Moments fit the model like the weights themselves.
TEST(Load, MomentsAreNeverTheModel) {
  const SeveralModels models("safetensors");
  for (const std::string moments : {"exp_avg.", "optimizer.exp_avg.", "a.grads."}) {
    for (const std::string prefix : {"", "model.", "params."}) {
      Tensors all;
      for (const auto& [name, tensor] : models.zeros) all.emplace_back(moments + name, tensor);
      for (const auto& [name, tensor] : models.good) all.emplace_back(prefix + name, tensor);
      weights::write_safetensors(models.file, all, {});
      const testing::Warnings warnings;
      models.expect_good();
      ASSERT_EQ(warnings.messages.size(), 1u) << moments << prefix;
      expect_part(warnings.messages[0],
                  str("left out ", models.zeros.size(), " tensors beside the model's: \"", moments));
    }
  }
}

// big_vision's checkpoints of training runs.
TEST(Load, OptaxsStateIsBesideBigVisionsWeights) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("models/google_npz/config.json"), folder / "config.json");
  Tensors tensors{{"opt/0/1/0/count", Tensor::zeros({1})}};
  for (const auto& [name, tensor] : tensors_of("google_npz")) {
    const std::string own = name.substr(name.starts_with("opt/target/") ? 11 : name.starts_with("params/") ? 7 : 0);
    for (const char* prefix : {"opt/0/1/0/mu/", "opt/0/1/0/nu/"})
      tensors.emplace_back(prefix + own, Tensor::zeros(tensor.shape()));
    tensors.emplace_back("params/" + own, tensor);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  const Tensor images = testing::input_of("google_npz");
  const testing::Warnings warnings;
  expect_same_values(build_model(open_model(folder)).forward(images), testing::model_of("google_npz").forward(images));
  EXPECT_TRUE(warnings.any("tensors beside the model's: \"opt/0/1/0/"));
}

TEST(Load, PrunedWeightsGetAdvice) {
  const SeveralModels models("safetensors");
  for (const std::string pruned : {"head.weight", "patch_embed.proj.weight"}) {  // the second shows the family
    Tensors all;
    for (const auto& [name, tensor] : models.good) {
      if (name == pruned) all.emplace_back(name + "_mask", tensor);
      all.emplace_back(name == pruned ? name + "_orig" : name, tensor);
    }
    weights::write_safetensors(models.file, all, {});
    const std::string error = load_error(models.file);
    expect_part(error, pruned + "_mask: pruned weights; before saving, call torch.nn.utils.prune.remove()");
  }
}

// Blocks that were compiled or sharded one by one.
TEST(Load, WrappersInsideNamesAreRemovedWhichIsSaidOnce) {
  const fs::path source = testing::model_fixture("timm_token").parent_path(), folder = testing::scratch_folder();
  fs::copy(source / "config.json", folder);
  const auto checkpoint = weights::Checkpoint::open(source / "model.safetensors");
  std::vector<std::pair<std::string, Tensor>> tensors;
  size_t wrapped = 0;
  for (std::string name : checkpoint.names()) {
    const Tensor tensor = checkpoint.tensor(name);
    if (name.starts_with("blocks.0.")) name.insert(9, "_checkpoint_wrapped_module._orig_mod."), ++wrapped;
    if (name.starts_with("blocks.1.")) name.insert(9, "module."), ++wrapped;
    tensors.emplace_back(name, tensor);
  }
  for (const std::string prefix : {"", "net."}) {
    std::vector<std::pair<std::string, Tensor>> prefixed;
    for (const auto& [name, tensor] : tensors) prefixed.emplace_back(prefix + name, tensor);
    if (!prefix.empty()) prefixed.emplace_back("criterion.weight", Tensor::zeros({1}));
    weights::write_safetensors(folder / "model.safetensors", prefixed, {});
    const testing::Warnings warnings;
    EXPECT_EQ(build_model(open_model(folder)).named_parameters().size(), tensors.size());
    const std::string said = str("from the names of ", wrapped, " tensors");
    EXPECT_EQ(std::ranges::count_if(warnings.messages, [&](const auto& w) { return w.find(said) != w.npos; }), 1)
        << prefix;
  }
}

TEST(CheckWeights, GivesTheErrorOfBuildingTheModelWithoutReadingIt) {
  for (const char* name : {"timm_token", "hf_clip", "open_clip_siglip"})
    check_weights(open_model(testing::model_fixture(name)));
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::model_fixture("hf_clip").parent_path(), folder, fs::copy_options::recursive);
  const auto checkpoint =
      weights::Checkpoint::open(testing::model_fixture("hf_clip").parent_path() / "model.safetensors");
  const auto error_without = [&](const std::string& left_out) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const std::string& name : checkpoint.names()) {
      if (name != left_out) tensors.emplace_back(name, checkpoint.tensor(name));
    }
    weights::write_safetensors(folder / "model.safetensors", tensors, {});
    return testing::error_of([&] { check_weights(open_model(folder)); });
  };
  expect_part(error_without("vision_model.post_layernorm.weight"), "missing (1):\n    norm.weight [20]");
  expect_part(error_without("text_model.final_layer_norm.bias"), "missing (1):\n    norm.bias [18]");
}

TEST(Load, ErrorsOfAProcessorNameItsFile) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::model_fixture("hf_vit").parent_path(), folder, fs::copy_options::recursive);
  fs::remove(folder / "processor_config.json");
  const auto expect_named = [&](const char* name, const std::string& text, const std::string& got) {
    write_file(folder / name, text);
    for (const LoadOptions& options : {LoadOptions{}, LoadOptions{.config = (folder / "config.json").string()}}) {
      const std::string error = load_error(folder, options);
      EXPECT_TRUE(error.starts_with((folder / name).string() + ": " + got)) << error;
    }
  };
  const std::string bad = R"({"image_processor_type": "ViTImageProcessor", "image_std": 0})";
  expect_named("preprocessor_config.json", bad, "image_std: expected numbers above 0 and up to 1, got 0");
  expect_named("preprocessor_config.json", "{", "expected JSON");
  expect_named("processor_config.json", "{\"image_processor\": " + bad + "}", "image_std: ");
}

TEST(Load, AFileOfAnotherProgramIsNamedWithoutAConfiguration) {
  const fs::path file = testing::scratch_folder() / "model.gguf";
  write_file(file, "GGUF" + std::string(40, '\0'));
  expect_part(load_error(file), "got a GGUF or ggml file");
}

TEST(Load, AGridThatDoesNotFitIsAnErrorOfTheFile) {
  const fs::path folder = testing::scratch_folder(), model = testing::fixture("models/timm_token");
  fs::copy(model, folder, fs::copy_options::recursive);
  const std::string config = read_text_file(model / "config.json");
  write_file(folder / "config.json", std::regex_replace(config, std::regex("\"img_size\": 32"), "\"img_size\": 33"));
  const std::string message = load_error(folder);
  EXPECT_TRUE(message.starts_with((folder / "model.safetensors").string() + ": patch_embed: expected ")) << message;
}

TEST(Load, ImageSizesAreMultiplesOfThePatch) {
  const fs::path model = testing::fixture("models/timm_token");
  const int64_t patch = open_model(model).config.vit.patch_size[0];
  for (const int64_t side : {int64_t{0}, patch + 1, int64_t{1} << 20, int64_t{-8}}) {
    expect_part(load_error(model, {.image_size = {{side, patch}}}), str("multiples of the patch size ", patch));
    expect_part(load_error(model, {.image_size = {{patch, side}}}), "timm_token");
    expect_part(load_error(model, {.image_size = {{patch, side}}}), ": image size: ");
  }
  EXPECT_EQ(load_error(model, {.image_size = {{2 * patch, 3 * patch}}}), "no error");
  // The nearest sizes are said, and none is below a patch.
  for (const auto& [side, below] :
       {std::pair{patch + 1, patch}, {1, patch}, {0, patch}, {-8, patch}, {3 * patch - 1, 2 * patch}}) {
    expect_part(load_error(model, {.image_size = {{side, patch}}}),
                str("got ", side, " (near are ", below, " and ", below + patch, ")"));
  }
}

}  // namespace
}  // namespace vitrail::models
