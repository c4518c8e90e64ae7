// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "tests/support/golden.h"
#include "tests/support/sam_fixture.h"
#include "tests/train/segment_fixture.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/train/objectives/segmentation/segment_model_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::train {
namespace {

// A Vision Transformer with LayerScale, whose images are normalised with 0.5.  Without a CLS token its blocks compute
// what those of Segment Anything do with relative positions of zero.
models::ModelConfig source_config() {
  models::ModelConfig config;
  config.architecture = "vit";
  config.vit.img_size = {32, 32};
  config.vit.patch_size = {8, 8};
  config.vit.num_classes = 0;
  config.vit.embed_dim = 32;
  config.vit.depth = 3;
  config.vit.num_heads = 2;
  config.vit.class_token = false;
  config.vit.global_pool = models::GlobalPool::none;
  config.vit.final_norm = false;
  config.vit.init_values = 0.3;
  config.preprocessing.mean = std::vector<double>(3, 0.5);
  config.preprocessing.std = std::vector<double>(3, 0.5);
  return config;
}

// Random weights, and scales that differ between attention and MLP.
models::VisionTransformer source_of(const models::ModelConfig& config) {
  RandomParams random(3);
  models::VisionTransformer model(config.vit, ParamSource(random));
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    if (parameter.name.ends_with("ls1.gamma")) parameter.tensor.copy_(Tensor::full({1}, 0.2));
    if (parameter.name.ends_with("ls2.gamma")) parameter.tensor.copy_(Tensor::full({1}, 0.4));
  }
  return model;
}

fs::path source_folder(const models::ModelConfig& config) {
  const fs::path folder = testing::scratch_folder() / "vit";
  write_model(folder, models::write_model_config(config), source_of(config).named_parameters());
  return folder;
}

Recipe recipe_from(const fs::path& init, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all{R"(model={"init": ")" + init.string() + "\"}", "segment.window=0"};
  all.insert(all.end(), settings.begin(), settings.end());
  return parse_recipe(tiny_segment_recipe("data"), "r.json", all);
}

// Pixels in 0 … 1, normalised.
Tensor normalised(const Tensor& pixels, const std::vector<double>& mean, const std::vector<double>& std) {
  Tensor result = pixels.clone();
  const int64_t plane = pixels.size(2) * pixels.size(3);
  for (int64_t i = 0; i < result.numel(); ++i) {
    const auto c = static_cast<size_t>(i / plane % 3);
    result.data<float>()[i] = static_cast<float>((result.data<float>()[i] - mean[c]) / std[c]);
  }
  return result;
}

TEST(SegmentModel, Sam2IsNotTrained) {
  const fs::path model = testing::sam_fixture("sam2").model;
  const std::string error = testing::error_of([&] { prepare_sam(recipe_from(model)); });
  EXPECT_TRUE(error.ends_with("expected a checkpoint of Segment Anything or MobileSAM to train, got SAM 2")) << error;
}

TEST(SegmentModel, ComputesWhatTheVisionTransformerDoesThatItStartsFrom) {
  const models::ModelConfig config = source_config();
  const fs::path folder = source_folder(config);
  const PreparedSam prepared = prepare_sam(recipe_from(folder));
  const models::VisionTransformer source = source_of(config);
  Tensor pixels = Tensor::randn({2, 3, 32, 32}, 5);
  for (int64_t i = 0; i < pixels.numel(); ++i) pixels.data<float>()[i] = 0.5f + 0.2f * pixels.data<float>()[i];
  const Tensor want = source.forward_features(normalised(pixels, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}));
  const Tensor got =
      prepared.model.image_encoder().trunk(normalised(pixels, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
  // 3 blocks of sums of at most 192 products, of values below 10.
  EXPECT_TRUE(testing::close(got.contiguous().view({2, 16, 32}), want, 3 * 192 * 0x1p-23 * 10));
}

TEST(SegmentModel, TheRescaleFactorBelongsToTheStatisticsOfTheSource) {
  models::ModelConfig config = source_config();
  const PreparedSam plain = prepare_sam(recipe_from(source_folder(config)));
  config.preprocessing.rule = models::ResizeRule::huggingface;
  config.preprocessing.rescale_factor = 1 / 127.5;
  config.preprocessing.mean = config.preprocessing.std = std::vector<double>(3, 1.0);
  const fs::path folder = source_folder(config);
  write_text(folder / "preprocessor_config.json", models::write_preprocessor_config(config.preprocessing));
  const PreparedSam same = prepare_sam(recipe_from(folder));
  for (const char* name : {"image_encoder.patch_embed.proj.weight", "image_encoder.patch_embed.proj.bias"})
    EXPECT_TRUE(testing::close(same.model.parameter(name), plain.model.parameter(name), 1e-6)) << name;
}

TEST(SegmentModel, InterpolatesPositionsAndAddsWindows) {
  const fs::path folder = source_folder(source_config());
  const PreparedSam prepared =
      prepare_sam(recipe_from(folder, {"segment.image_size=64", "segment.window=3", "segment.global_every=3"}));
  const models::SamEncoderConfig& encoder = prepared.model.config().encoder;
  EXPECT_EQ(encoder.grid, 8);
  EXPECT_EQ(encoder.blocks[0].window, 3);
  EXPECT_EQ(encoder.blocks[2].window, 0);
  ASSERT_FALSE(prepared.notes.empty());
  EXPECT_EQ(prepared.notes[0], "positions: interpolated from 4×4 to 8×8");
  const Tensor table = prepared.model.parameter("image_encoder.blocks.0.attn.rel_pos_h");
  EXPECT_TRUE(testing::close(table, Tensor::zeros({5, 16}), 0));
}

// What load_sam() reads of a model that was written.
models::Sam written_and_read(const models::Sam& model) {
  const fs::path folder = testing::scratch_folder() / "written";
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& tensor : model.named_parameters()) tensors.emplace_back(tensor.name, tensor.tensor);
  weights::write_hub_folder(folder, models::write_sam_config(model.config()), tensors);
  return models::load_sam(folder);
}

TEST(SegmentModel, AddsAMaskDecoderToAnImageEncoderAlone) {
  const fs::path encoder = testing::sam_fixture("timm_encoder").model;
  const models::Sam source = models::load_sam(encoder);
  const PreparedSam prepared = prepare_sam(recipe_from(encoder, {"segment.decoder_mlp=40"}));
  EXPECT_EQ(prepared.notes.at(0), "prompt encoder and mask decoder: new");
  const models::Sam model = written_and_read(prepared.model);
  EXPECT_TRUE(model.config().has_decoder);
  EXPECT_EQ(model.config().encoder.norm_eps, models::kTimmSamNormEps);
  EXPECT_EQ(model.config().decoder.dim, 16);
  EXPECT_EQ(model.config().decoder.mlp_hidden, 40);
  const Tensor pixels = Tensor::randn({1, 3, 48, 48}, 6);
  EXPECT_TRUE(testing::close(model.image_encoder().forward(pixels), source.image_encoder().forward(pixels), 0));
}

// The model has 10×10 patches of 8 pixels and windows of 4×4, and its second block is global.
TEST(SegmentModel, StartsFromAModelOfAnotherImageSize) {
  const testing::SamFixture fixture = testing::sam_fixture("padded_windows");
  const models::Sam source = models::load_sam(fixture.model);
  for (const auto& [size, window] : {std::pair<int64_t, int64_t>{120, 4}, {24, 0}}) {
    SCOPED_TRACE(size);
    const PreparedSam prepared = prepare_sam(recipe_from(fixture.model, {str("segment.image_size=", size)}));
    ASSERT_EQ(prepared.notes.size(), 1u);
    EXPECT_EQ(prepared.notes[0], str("positions: interpolated from 80×80 to ", size, "×", size, " pixels"));
    const models::Sam model = written_and_read(prepared.model);
    const int64_t grid = size / 8;
    EXPECT_EQ(model.config().encoder.grid, grid);
    EXPECT_EQ(prepared.model.config().encoder.blocks[0].window, window) << "0: of all 3×3 patches";
    const Tensor pixels = Tensor::randn({1, 3, size, size}, 6);
    EXPECT_TRUE(testing::close(model.image_encoder().trunk(pixels), prepared.model.image_encoder().trunk(pixels), 0))
        << "what was written computes what is trained";
    EXPECT_EQ(model.config().encoder.blocks[1].window, 0);
    const Tensor cells = source.parameter("image_encoder.pos_embed").contiguous().view({1, 100, 32});
    const Tensor positions = nn::resample_positions(cells, 0, {10, 10}, {grid, grid}, {}).contiguous();
    EXPECT_TRUE(testing::close(model.parameter("image_encoder.pos_embed"), positions.view({1, grid, grid, 32}), 0));
    const std::string table = ".attn.rel_pos_w", windowed = "image_encoder.blocks.0", global = "image_encoder.blocks.1";
    if (window > 0) {
      EXPECT_TRUE(testing::close(model.parameter(windowed + table), source.parameter(windowed + table), 0));
    }
    const Tensor row = model.parameter(global + table), old = source.parameter(global + table);
    EXPECT_EQ(row.shape(), (Shape{2 * grid - 1, 16}));
    EXPECT_TRUE(testing::close(row.select(0, grid - 1), old.select(0, 9), 1e-6)) << "the position of the query itself";
    for (const char* name : {"image_encoder.blocks.2.mlp.lin1.weight", "mask_decoder.mask_tokens.weight"}) {
      EXPECT_TRUE(testing::close(model.parameter(name), source.parameter(name), 0)) << name;
    }
    const sam::Predictor predictor(written_and_read(prepared.model));
    EXPECT_EQ(predictor.predict(predictor.embed(fixture.image), {.points = {{20, 20, 1}}}).logits.size(1), 4 * grid);
  }
  const auto error = [](const fs::path& model, const char* size) {
    return error_of([&] { prepare_sam(recipe_from(model, {size, "segment.train_encoder=false"})); });
  };
  EXPECT_TRUE(contains(error(fixture.model, "segment.image_size=81"), "a multiple of the patch size 8"));
  const fs::path mobile = testing::sam_fixture("mobile").model;
  EXPECT_TRUE(contains(error(mobile, "segment.image_size=2048"), "MobileSAM, or 0"));
}

TEST(SegmentModel, OfSegmentAnythingHasNoOtherConfigurationOrKeyMap) {
  const fs::path init = testing::sam_fixture("padded_windows").model;
  for (const char* field : {"model.config", "model.key_map"}) {
    const Recipe recipe = recipe_from(init, {str(field, "=other")});
    EXPECT_EQ(error_of([&] { prepare_sam(recipe); }),
              str(field, ": expected none for a checkpoint of Segment Anything in model.init, got other"));
  }
}

TEST(SegmentModel, RefusesVisionTransformersOfAnotherKind) {
  models::ModelConfig config = source_config();
  config.vit.qk_norm = true;
  config.vit.pos_embed = models::PositionEmbedding::sincos2d;
  const Recipe recipe = recipe_from(source_folder(config));
  const std::string message = error_of([&] { prepare_sam(recipe); });
  EXPECT_TRUE(contains(message, "another attention, no learned positions")) << message;
}

models::VisionTransformerConfig plain_vit() {
  models::VisionTransformerConfig vit = source_config().vit;
  vit.img_size = {48, 48};
  vit.num_heads = 4;
  vit.mlp_ratio = 1.5;
  vit.depth = 6;
  return vit;
}

TEST(SegmentConfig, FollowsFromTheVisionTransformerAndTheRecipe) {
  SegmentRecipe recipe;
  recipe.window = 2;
  recipe.global_every = 3;
  recipe.decoder_dim = 64;
  recipe.decoder_depth = 5;
  recipe.decoder_mlp = 96;
  models::VisionTransformerConfig vit = plain_vit();
  models::SamConfig config = segment_config(vit, recipe);
  EXPECT_EQ(config.encoder.grid, 6);
  EXPECT_EQ(config.encoder.patch_size, 8);
  EXPECT_EQ(config.encoder.dim, 32);
  EXPECT_EQ(config.encoder.num_heads, 4);
  EXPECT_EQ(config.encoder.head_dim, 8);
  EXPECT_EQ(config.encoder.mlp_hidden, 48);
  EXPECT_TRUE(config.encoder.qkv_bias);
  EXPECT_EQ(config.encoder.out_chans, 64);
  std::vector<std::pair<int64_t, int64_t>> blocks;
  for (const models::SamBlockConfig& block : config.encoder.blocks)
    blocks.emplace_back(block.window, block.table_length);
  EXPECT_EQ(blocks, (std::vector<std::pair<int64_t, int64_t>>{{2, 3}, {2, 3}, {0, 11}, {2, 3}, {2, 3}, {0, 11}}));
  EXPECT_EQ(config.decoder.dim, 64);
  EXPECT_EQ(config.decoder.depth, 5);
  EXPECT_EQ(config.decoder.mlp_hidden, 96);
  EXPECT_EQ(config.decoder.cross_dim, 32);
  EXPECT_EQ(config.decoder.upscale_dims[0], 16);
  EXPECT_EQ(config.decoder.upscale_dims[1], 8);
  EXPECT_EQ(config.decoder.iou_hidden, 64);
  recipe.window = 0;
  recipe.image_size = 80;
  vit.head_dim = 16;
  vit.mlp_hidden = 20;
  vit.qkv_bias = false;
  config = segment_config(vit, recipe);
  EXPECT_EQ(config.encoder.grid, 10);
  EXPECT_EQ(config.encoder.head_dim, 16);
  EXPECT_EQ(config.encoder.mlp_hidden, 20);
  EXPECT_FALSE(config.encoder.qkv_bias);
  for (const models::SamBlockConfig& block : config.encoder.blocks) {
    EXPECT_EQ(block.window, 0);
    EXPECT_EQ(block.table_length, 19);
  }
}

TEST(SegmentConfig, WindowsAndSizesHaveLimits) {
  SegmentRecipe recipe;
  recipe.window = 5;
  EXPECT_NO_THROW(segment_config(plain_vit(), recipe));
  recipe.window = 6;
  EXPECT_EQ(error_of([&] { segment_config(plain_vit(), recipe); }),
            "segment.window: expected a window smaller than the grid of 6 patches, or 0, got 6");
  recipe.window = 0;
  recipe.image_size = 50;
  EXPECT_EQ(error_of([&] { segment_config(plain_vit(), recipe); }),
            "segment.image_size: expected a multiple of the patch size 8, got 50");
}

// Each part that Segment Anything's encoder does not have, alone.
TEST(SegmentConfig, NamesThePartsThatTheEncoderLacks) {
  using Vit = models::VisionTransformerConfig;
  const std::vector<std::pair<const char*, std::function<void(Vit&)>>> parts{
      {"images that are not RGB", [](Vit& v) { v.in_chans = 1; }},
      {"images or patches that are not square",
       [](Vit& v) {
         v.img_size = {48, 56};
       }},
      {"images or patches that are not square",
       [](Vit& v) {
         v.patch_size = {8, 16};
       }},
      {"another attention", [](Vit& v) { v.attn_type = models::AttentionType::eva; }},
      {"another attention", [](Vit& v) { v.qk_norm = true; }},
      {"another attention", [](Vit& v) { v.qk_scale = 0.5; }},
      {"another attention", [](Vit& v) { v.scale_attn_inner = true; }},
      {"other norms", [](Vit& v) { v.norm_first = false; }},
      {"other norms", [](Vit& v) { v.use_post_norm = true; }},
      {"other norms", [](Vit& v) { v.pre_norm = true, v.patch_bias = true; }},
      {"no bias in the projection", [](Vit& v) { v.proj_bias = false; }},
      {"no bias in the projection", [](Vit& v) { v.patch_bias = false; }},
      {"relative or rotary positions", [](Vit& v) { v.use_rel_pos_bias = true; }},
      {"relative or rotary positions", [](Vit& v) { v.use_shared_rel_pos_bias = true; }},
      {"relative or rotary positions", [](Vit& v) { v.use_rot_pos_emb = true; }},
      {"no learned positions", [](Vit& v) { v.pos_embed = models::PositionEmbedding::none; }},
      {"norms of patches", [](Vit& v) { v.patch_norm = models::PatchNorm::pre; }},
      {"another MLP", [](Vit& v) { v.act_layer = kernels::Activation::relu; }},
      {"another MLP", [](Vit& v) { v.mlp_layer = models::MlpLayer::swiglu; }},
      {"another MLP", [](Vit& v) { v.swiglu_mlp = true; }},
      {"another MLP", [](Vit& v) { v.scale_mlp = true; }}};
  for (const auto& [part, change] : parts) {
    models::VisionTransformerConfig vit = plain_vit();
    change(vit);
    EXPECT_EQ(error_of([&] { segment_config(vit, {}); }),
              str("model: expected a plain Vision Transformer for the image encoder, got ", part));
  }
  models::VisionTransformerConfig several = plain_vit();
  several.in_chans = 1;
  several.proj_bias = false;
  several.scale_mlp = true;
  EXPECT_EQ(error_of([&] { segment_config(several, {}); }),
            "model: expected a plain Vision Transformer for the image encoder, got images that are not RGB, no bias in "
            "the projection, another MLP");
}

TEST(SegmentModel, FreezesWhatTheRecipeSays) {
  const fs::path folder = source_folder(source_config());
  EXPECT_EQ(prepare_sam(recipe_from(folder, {"model.freeze=[\"mask_decoder.*\"]"})).frozen,
            (std::vector<std::string>{"mask_decoder.*", "prompt_encoder.pe_layer.*"}));
  const PreparedSam frozen = prepare_sam(recipe_from(folder, {"segment.train_encoder=false"}));
  EXPECT_EQ(frozen.frozen,
            (std::vector<std::string>{"prompt_encoder.pe_layer.*", "regex:image_encoder\\.(?!neck\\.).*"}));
  EXPECT_EQ(frozen.notes, (std::vector<std::string>{"neck, prompt encoder and mask decoder: new"}));
  const auto groups = optim::parameter_groups(frozen.model.named_parameters(), {.frozen = frozen.frozen});
  for (const optim::Parameter& trained : groups) {
    EXPECT_TRUE(!trained.name.starts_with("image_encoder.") || trained.name.starts_with("image_encoder.neck."))
        << trained.name;
    EXPECT_FALSE(trained.name.starts_with("prompt_encoder.pe_layer.")) << trained.name;
  }
}

TEST(SegmentModel, TheSeedDrawsWhatIsNew) {
  const fs::path folder = source_folder(source_config());
  const auto parameter = [&](const char* seed, const char* name) {
    return prepare_sam(recipe_from(folder, {seed})).model.parameter(name).clone();
  };
  const char* const fresh = "mask_decoder.mask_tokens.weight";
  EXPECT_TRUE(testing::close(parameter("seed=1", fresh), parameter("seed=1", fresh), 0));
  EXPECT_FALSE(testing::close(parameter("seed=1", fresh), parameter("seed=2", fresh), 0));
  const char* const copied = "image_encoder.blocks.2.mlp.lin2.bias";
  EXPECT_TRUE(testing::close(parameter("seed=1", copied), parameter("seed=2", copied), 0));
  const Recipe scratch = parse_recipe(tiny_segment_recipe("data"), "r.json", {"seed=4"});
  EXPECT_TRUE(prepare_sam(scratch).notes.empty());
}

TEST(SegmentModel, ACheckpointOfAnotherShapeIsAnError) {
  models::ModelConfig config = source_config();
  config.vit.class_token = true;
  config.vit.num_classes = 3;
  config.vit.global_pool = models::GlobalPool::token;
  const fs::path folder = source_folder(config);
  const PreparedSam prepared = prepare_sam(recipe_from(folder));
  const Tensor positions = source_of(config).parameter("pos_embed");
  EXPECT_TRUE(testing::close(prepared.model.parameter("image_encoder.pos_embed").contiguous().view({1, 16, 32}),
                             positions.narrow(1, 1, 16).contiguous(), 0))
      << "without the position of the class token";
  EXPECT_EQ(
      error_of([&] { prepare_sam(recipe_from(testing::sam_fixture("mobile").model, {"segment.train_encoder=true"})); }),
      "segment.train_encoder: expected false for MobileSAM, whose encoder has batch normalisation, got true");
}

}  // namespace
}  // namespace vitrail::train
