// SPDX-License-Identifier: Apache-2.0
// Files of masked autoencoders: those of transformers and of the authors, read and written.
#include "vitrail/models/mae/files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using testing::close;
using testing::contains;
using testing::error_of;

MaskedAutoencoder read_mae(const fs::path& path) { return load_masked_autoencoder(open_masked_autoencoder(path)); }

std::string content_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_content(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

void expect_equal_models(const MaskedAutoencoder& got, const MaskedAutoencoder& want) {
  const auto parameters = want.named_parameters();
  ASSERT_EQ(got.named_parameters().size(), parameters.size());
  for (const auto& [name, tensor] : parameters) EXPECT_TRUE(close(got.parameter(name), tensor, 0)) << name;
}

// A copy of a fixture's folder whose config.json has other fields; null: without the field.
fs::path mae_folder_with(const std::string& fixture, const nlohmann::json& fields) {
  const fs::path folder = testing::scratch_folder(), source = testing::fixture("mae/" + fixture);
  for (const char* file : {"model.safetensors", "preprocessor_config.json"}) fs::copy(source / file, folder / file);
  nlohmann::json config = nlohmann::json::parse(content_of(source / "config.json"));
  config.merge_patch(fields);
  write_content(folder / "config.json", config.dump());
  return folder;
}

TEST(MaeFiles, HaveTheirConfiguration) {
  const MaskedAutoencoderFiles files = open_masked_autoencoder(testing::fixture("mae/norm_pix"));
  const MaskedAutoencoderConfig& config = files.config;
  EXPECT_EQ(config.encoder.embed_dim, 24);
  EXPECT_EQ(config.encoder.num_classes, 0);
  EXPECT_FALSE(config.encoder.qkv_bias);
  EXPECT_EQ(config.decoder_dim, 20);
  EXPECT_EQ(config.decoder_depth, 2);
  EXPECT_EQ(config.decoder_heads, 2);
  EXPECT_EQ(config.decoder_mlp_hidden, 28);
  EXPECT_EQ(config.mask_ratio, 0.5);
  EXPECT_TRUE(config.norm_pix);
  EXPECT_EQ(config.preprocessing.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_FALSE(open_masked_autoencoder(testing::fixture("mae/plain")).config.norm_pix);
}

// The authors' names and order are those of another script, tools/golden/mae.py.
TEST(MaeFiles, OfTheAuthorsAreReadWithTheConfigurationBesideThem) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("mae/plain/config.json"), folder / "config.json");
  fs::copy(testing::fixture("mae/authors/checkpoint.pth"), folder / "checkpoint.pth");
  expect_equal_models(read_mae(folder / "checkpoint.pth"), read_mae(testing::fixture("mae/plain")));
}

TEST(MaeFiles, AreReadAsTheyAreWritten) {
  for (const char* fixture : {"plain", "norm_pix"}) {
    const MaskedAutoencoder model = read_mae(testing::fixture(str("mae/", fixture)));
    const fs::path folder = testing::scratch_folder();
    write_masked_autoencoder(folder, model);
    expect_equal_models(read_mae(folder), model);
    const auto [config, original] = std::pair(open_masked_autoencoder(folder).config, model.config());
    EXPECT_EQ(write_mae_config(config), write_mae_config(original));
    EXPECT_EQ(config.preprocessing.mean, original.preprocessing.mean);
    EXPECT_EQ(config.preprocessing.resize_to, original.preprocessing.resize_to);
    EXPECT_EQ(config.encoder.act_layer, original.encoder.act_layer);

    weights::write_safetensors(folder / "authors.safetensors", mae_tensors(model, MaeNames::authors));
    expect_equal_models(read_mae(folder / "authors.safetensors"), model);
  }
}

// The fixture has the names of the published files.
TEST(MaeFiles, AreWrittenUnderThePublishedNames) {
  const MaskedAutoencoder model = read_mae(testing::fixture("mae/norm_pix"));
  const auto source = weights::Checkpoint::open(testing::fixture("mae/norm_pix/model.safetensors"));
  const NamedTensors tensors = mae_tensors(model, MaeNames::transformers);
  EXPECT_EQ(tensors.size(), source.tensors().size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(source.has(name)) << name;
    EXPECT_TRUE(close(tensor, source.tensor(name), 0)) << name;
  }
  const auto authors = weights::Checkpoint::open(testing::fixture("mae/authors/checkpoint.pth"));
  for (const auto& [name, tensor] : mae_tensors(read_mae(testing::fixture("mae/plain")), MaeNames::authors)) {
    ASSERT_TRUE(authors.has(name)) << name;
    EXPECT_TRUE(close(tensor, authors.tensor(name), 0)) << name;
  }
}

// The encoder of a folder that is written opens as an image model does.
TEST(MaeFiles, HaveTheEncoderAsAnImageModel) {
  const MaskedAutoencoder model = read_mae(testing::fixture("mae/plain"));
  const fs::path folder = testing::scratch_folder();
  write_masked_autoencoder(folder, model);
  const VisionTransformer encoder = build_model(open_model(folder));
  for (const auto& [name, tensor] : encoder.named_parameters())
    EXPECT_TRUE(close(model.parameter("encoder." + name), tensor, 0)) << name;
}

// The tensors of an authors' file of a published width that give its configuration.
NamedTensors published_shapes(int64_t dim, int64_t patches, int64_t decoder_dim) {
  NamedTensors tensors;
  const auto add = [&](const std::string& name, const Shape& shape) {
    tensors.emplace_back(name, Tensor::zeros(shape));
  };
  add("pos_embed", {1, 1 + patches, dim});
  add("patch_embed.proj.weight", {dim, 3, 2, 2});
  for (const char* block : {"blocks.0.", "blocks.1.", "decoder_blocks.0."})
    add(std::string(block) + "norm1.weight", {dim});
  add("decoder_blocks.0.mlp.fc1.weight", {40, decoder_dim});
  add("decoder_embed.weight", {decoder_dim, dim});
  add("decoder_pred.weight", {12, decoder_dim});
  return tensors;
}

MaskedAutoencoderConfig authors_config_of(const NamedTensors& tensors) {
  const fs::path file = testing::scratch_folder() / "mae.safetensors";
  weights::write_safetensors(file, tensors);
  return open_masked_autoencoder(file).config;
}

TEST(MaeFiles, OfTheAuthorsGiveTheConfigurationOfPublishedWidths) {
  for (const auto& [dim, heads] : {std::pair<int64_t, int64_t>{768, 12}, {1024, 16}, {1280, 16}}) {
    const MaskedAutoencoderConfig config = authors_config_of(published_shapes(dim, 9, 32));
    EXPECT_EQ(config.encoder.embed_dim, dim);
    EXPECT_EQ(config.encoder.num_heads, heads);
    EXPECT_EQ(config.encoder.depth, 2);
    EXPECT_EQ(config.encoder.img_size, (std::array<int64_t, 2>{6, 6}));
    EXPECT_EQ(config.encoder.patch_size, (std::array<int64_t, 2>{2, 2}));
    EXPECT_EQ(config.decoder_dim, 32);
    EXPECT_EQ(config.decoder_depth, 1);
    EXPECT_EQ(config.decoder_heads, 16);
    EXPECT_EQ(config.decoder_mlp_hidden, 40);
  }
}

TEST(MaeFiles, OfTheAuthorsNeedAConfigurationForOtherWidths) {
  const auto problem = [](const NamedTensors& tensors) { return error_of([&] { authors_config_of(tensors); }); };
  const std::string other = problem(published_shapes(100, 9, 32));
  EXPECT_TRUE(contains(other, "mae.safetensors: expected a masked autoencoder of 768, 1024 or 1280 features")) << other;
  EXPECT_TRUE(contains(other, "got 100 features and 9 patches, 32 features in the decoder")) << other;
  EXPECT_TRUE(contains(problem(published_shapes(768, 10, 32)), "got 768 features and 10 patches"));
  EXPECT_TRUE(contains(problem(published_shapes(768, 9, 24)), "24 features in the decoder"));
}

TEST(MaeFiles, AreRefusedWithoutADecoder) {
  const fs::path vit = testing::fixture("models/hf_vit");
  EXPECT_FALSE(is_masked_autoencoder(vit));
  EXPECT_TRUE(is_masked_autoencoder(testing::fixture("mae/plain")));
  EXPECT_TRUE(is_masked_autoencoder(testing::fixture("mae/authors/checkpoint.pth")));
  const std::string message = error_of([&] { open_masked_autoencoder(vit); });
  EXPECT_TRUE(contains(message, "model.safetensors: expected a masked autoencoder with its decoder")) << message;
}

TEST(MaeFiles, AreRefusedWithAnotherConfiguration) {
  const auto problem = [](const nlohmann::json& fields) {
    const fs::path folder = mae_folder_with("plain", fields);
    return error_of([&] { read_mae(folder); });
  };
  const auto expect = [&](const nlohmann::json& fields, const std::string& part) {
    const std::string message = problem(fields);
    EXPECT_TRUE(contains(message, part)) << message;
  };
  expect({{"model_type", "vit"}}, "config.json: model_type: expected vit_mae, got \"vit\"");
  expect({{"mask_ratio", 1.5}}, "config.json: mask_ratio: expected a value between 0 and 1, got 1.5");
  expect({{"mask_ratio", 1e-20}}, "config.json: mask_ratio: expected a value that masks one of 16 patches, got 1e-20");
  expect({{"decoder_hidden_size", 22}}, "decoder_dim: expected a multiple of 4 up to 65536, got 22");
  expect({{"decoder_num_attention_heads", 3}}, "decoder_heads: expected a divisor of the width 20, got 3");
  expect({{"decoder_num_hidden_layers", -1}}, "decoder_depth: expected 0 to 4096, got -1");
  expect({{"decoder_intermediate_size", 0}}, "decoder_intermediate_size: expected 1 to 65536, got 0");
  expect({{"decoder_num_hidden_layers", 1}}, "not expected (12):\n    decoder.blocks.1");
  expect({{"decoder_num_hidden_layers", 3}}, "missing (12):");
  expect({{"decoder_intermediate_size", 30}}, "decoder.blocks.0.mlp.fc1.weight");
  expect({{"image_size", 20}}, "decoder.pos_embed");
}

TEST(MaeFiles, NeedAConfigurationOfTransformersForItsNames) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("mae/plain/model.safetensors"), folder / "model.safetensors");
  const std::string message = error_of([&] { open_masked_autoencoder(folder); });
  EXPECT_TRUE(contains(message, "model.safetensors: expected a config.json of transformers beside it, got none"))
      << message;
}

MaskedAutoencoderConfig small_mae_config() {
  MaskedAutoencoderConfig config = open_masked_autoencoder(testing::fixture("mae/plain")).config;
  config.encoder.patch_drop_rate = config.encoder.drop_path_rate = 0.1;
  config.encoder.weight_init = "jax";
  config.encoder.global_pool = GlobalPool::avg;
  config.encoder.fc_norm = false;
  return config;
}

TEST(MaeFiles, RefuseEncodersThatTransformersDoesNotHave) {
  EXPECT_NO_THROW(write_mae_config(small_mae_config()));
  const auto problem = [](const std::function<void(VisionTransformerConfig&)>& change) {
    MaskedAutoencoderConfig config = small_mae_config();
    change(config.encoder);
    return error_of([&] { write_mae_config(config); });
  };
  const std::string expected =
      "ViTMAEForPreTraining: expected an encoder that its configuration can express, got another ";
  EXPECT_EQ(problem([](auto& vit) { vit.reg_tokens = 4; }), expected + "reg_tokens");
  EXPECT_EQ(problem([](auto& vit) { vit.qk_norm = true; }), expected + "qk_norm");
  EXPECT_EQ(problem([](auto& vit) { vit.init_values = 0.1; }), expected + "init_values");
}

// Weights of a run have the preprocessing of timm's form.
TEST(MaeFiles, HaveAProcessorForAnyPreprocessing) {
  MaskedAutoencoderConfig config = small_mae_config();
  config.preprocessing = {.input_size = {{16, 16}}, .interpolation = "bicubic", .mean = {{0.5}}, .std = {{0.25}}};
  config.preprocessing.crop_pct = 1.0;
  const nlohmann::json processor = nlohmann::json::parse(write_mae_processor(config));
  EXPECT_EQ(processor["size"], (nlohmann::json{{"height", 16}, {"width", 16}}));
  EXPECT_EQ(processor["resample"], 3);
  EXPECT_EQ(processor["image_mean"], nlohmann::json::array({0.5}));
}

TEST(MaeFiles, RefuseEncodersThatCannotBeMasked) {
  const auto problem = [](const std::function<void(VisionTransformerConfig&)>& change) {
    MaskedAutoencoderConfig config = small_mae_config();
    change(config.encoder);
    return error_of([&] { checked(config); });
  };
  EXPECT_EQ(problem([](auto& vit) { vit.num_classes = 3; }),
            "num_classes: expected an encoder without a head (0), got 3");
  EXPECT_EQ(problem([](auto& vit) { vit.fc_norm = true; }),
            "fc_norm: expected an encoder with a norm in front of the pooling, got one behind it");
  EXPECT_EQ(problem([](auto& vit) { vit.final_norm = false; }),
            "fc_norm: expected an encoder with a norm in front of the pooling, got none");
  EXPECT_EQ(problem([](auto& vit) { vit.global_pool = GlobalPool::map; }),
            "global_pool: expected an encoder without attention pooling, got map");
  EXPECT_EQ(
      problem([](auto& vit) { vit.use_rel_pos_bias = true, vit.patch_drop_rate = 0; }),
      "use_rel_pos_bias: expected an encoder without a relative position bias, which is for all patches, got one");
}

}  // namespace
}  // namespace vitrail::models
