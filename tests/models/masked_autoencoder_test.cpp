// SPDX-License-Identifier: Apache-2.0
// Masked autoencoders against transformers' ViTMAEForPreTraining (tools/golden/mae.py), and their own properties.
#include "vitrail/models/mae/masked_autoencoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/models/mae/files.h"
#include "vitrail/models/mae/initial_params.h"
#include "vitrail/models/mae/patch_masks.h"
#include "vitrail/models/mae/patch_pixels.h"
#include "vitrail/models/mae/pixel_loss.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/optim/optimizer.h"

namespace vitrail::models {
namespace {

using testing::close;
using testing::error_of;

constexpr int64_t kFixturePatch = 4, kFixturePatches = 16;

MaskedAutoencoder mae_of(const std::string& folder, const char* file = "model.safetensors", DType dtype = DType::f64) {
  MaskedAutoencoderFiles files = open_masked_autoencoder(testing::fixture("mae/" + folder + "/model.safetensors"));
  files.checkpoint =
      std::make_shared<weights::Checkpoint>(weights::Checkpoint::open(testing::fixture("mae/" + folder + "/" + file)));
  MaskedAutoencoder model = load_masked_autoencoder(files);
  model.to(dtype);
  return model;
}

PatchIndices indices_of(const Tensor& kept) {
  PatchIndices result;
  for (int64_t b = 0; b < kept.size(0); ++b) {
    const int64_t* const row = kept.data<int64_t>() + b * kept.size(1);
    result.emplace_back(row, row + kept.size(1));
  }
  return result;
}

// The indices of the ones in a mask [B, N].
PatchIndices masked_in(const Tensor& mask) {
  PatchIndices result(static_cast<size_t>(mask.size(0)));
  const Tensor values = mask.to(DType::f64).contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (values.data<double>()[i] == 1) result[static_cast<size_t>(i / mask.size(1))].push_back(i % mask.size(1));
  }
  return result;
}

// Predictions [B, N, C·P·P] from the order (c, y, x) to (y, x, c).
Tensor channels_last(const Tensor& patches) {
  return patches.view({patches.size(0), patches.size(1), 3, kFixturePatch * kFixturePatch})
      .permute({0, 1, 3, 2})
      .reshape(patches.shape());
}

class MaeReference : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string name_ = GetParam();
  const testing::Golden golden_ = testing::read_golden(testing::fixture("mae/" + name_ + "/golden.safetensors"));
  const Tensor images_ = golden_["images"];
  PatchIndices kept(int step) const { return indices_of(golden_[str("kept_", step)]); }
};

// In double precision: the sums of 48 pixels and 24 features have another order.
TEST_P(MaeReference, PredictionsMaskAndLossEqualThoseOfTransformers) {
  const MaskedAutoencoder model = mae_of(name_);
  const Tensor predictions = model.forward(images_, kept(0));
  EXPECT_TRUE(close(channels_last(predictions), golden_["predictions_0"], 1e-12));
  EXPECT_EQ(masked_patches(kept(0), kFixturePatches), masked_in(golden_["mask_0"]));
  EXPECT_TRUE(close(pixel_loss(predictions, images_, kept(0), model.config()), golden_["loss_0"], 1e-12));
  EXPECT_EQ(std::ssize(kept(0)[0]), num_kept_patches(kFixturePatches, model.config().mask_ratio));
}

TEST_P(MaeReference, InSinglePrecisionStaysWithinRounding) {
  const MaskedAutoencoder model = mae_of(name_, "model.safetensors", DType::f32);
  const Tensor images = images_.to(DType::f32), predictions = model.forward(images, kept(0));
  EXPECT_TRUE(close(channels_last(predictions), golden_["predictions_0"], 1e-5));
  EXPECT_TRUE(close(pixel_loss(predictions, images, kept(0), model.config()), golden_["loss_0"], 1e-5));
}

// The fixture has its gradients and weights in single precision.
TEST_P(MaeReference, GradientsEqualThoseOfTransformers) {
  MaskedAutoencoder model = mae_of(name_);
  model.requires_grad(true);
  autograd::backward(pixel_loss(model.forward(images_, kept(0)), images_, kept(0), model.config()));
  const MaskedAutoencoder gradients = mae_of(name_, "gradients.safetensors");
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (name.ends_with("pos_embed")) continue;
    EXPECT_TRUE(close(autograd::grad_of(parameter), gradients.parameter(name), 1e-8, 1e-6)) << name;
  }
}

// The authors' groups have weight decay for the class and the mask token too.
TEST_P(MaeReference, StepsOfAdamWEqualThoseOfTorch) {
  MaskedAutoencoder model = mae_of(name_);
  const nlohmann::json settings = nlohmann::json::parse(golden_.config);
  std::vector<optim::Parameter> parameters = optim::parameter_groups(
      model, {.weight_decay = settings["decay"], .frozen = {kFixedPositions.begin(), kFixedPositions.end()}});
  for (optim::Parameter& parameter : parameters) {
    if (parameter.name == "encoder.cls_token" || parameter.name == "decoder.mask_token")
      parameter.weight_decay = settings["decay"];
  }
  const auto optimizer =
      optim::make_optimizer({.beta1 = settings["beta1"], .beta2 = settings["beta2"].get<double>()}, parameters);
  model.train();
  for (int step = 0; step < settings["steps"]; ++step) {
    const Tensor loss = pixel_loss(model.forward(images_, kept(step)), images_, kept(step), model.config());
    EXPECT_TRUE(close(loss, golden_[str("loss_", step)], 1e-9)) << step;
    autograd::backward(loss);
    optimizer->step(settings["rate"]);
    optimizer->clear_gradients();
  }
  const MaskedAutoencoder before = mae_of(name_), trained = mae_of(name_, "trained.safetensors");
  for (const auto& [name, parameter] : model.named_parameters()) {
    EXPECT_TRUE(close(parameter, trained.parameter(name), 1e-7)) << name;
    EXPECT_EQ(close(parameter, before.parameter(name), 1e-5), name.ends_with("pos_embed")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(MaskedAutoencoder, MaeReference, ::testing::Values("plain", "norm_pix"),
                         [](const auto& info) { return std::string(info.param); });

// A random model of another shape: a rectangular image, registers, and one channel.
MaskedAutoencoder random_mae(bool norm_pix = false) {
  MaskedAutoencoderConfig config;
  config.encoder.img_size = {8, 12};
  config.encoder.patch_size = {4, 2};
  config.encoder.in_chans = 1;
  config.encoder.num_classes = 0;
  config.encoder.embed_dim = 16;
  config.encoder.depth = 2;
  config.encoder.num_heads = 2;
  config.encoder.reg_tokens = 2;
  config.encoder.dynamic_img_size = true;
  config.decoder_dim = 12;
  config.decoder_depth = config.decoder_heads = 1;
  config.decoder_mlp_hidden = 20;
  config.norm_pix = norm_pix;
  RandomParams random(1, DType::f64);
  MaeInitialParams params(config, random);
  return MaskedAutoencoder(config, ParamSource(params));
}

const Tensor& small_images() {
  static const Tensor images = Tensor::randn({2, 1, 8, 12}, 3, DType::f64);
  return images;
}

const PatchIndices kKept{{0, 7, 3}, {1, 2, 11}};

// New pixels in a patch of the first image; the grid is 2 × 6.
Tensor with_new_patch(int64_t patch) {
  const Tensor images = small_images().clone();
  const Tensor place = images.narrow(0, 0, 1).narrow(2, patch / 6 * 4, 4).narrow(3, patch % 6 * 2, 2);
  place.copy_(Tensor::randn({1, 1, 4, 2}, 8, DType::f64));
  return images;
}

TEST(MaskedAutoencoder, PixelsOfMaskedPatchesAreTargetsAlone) {
  for (const bool norm_pix : {false, true}) {
    const MaskedAutoencoder model = random_mae(norm_pix);
    const Tensor predictions = model.forward(small_images(), kKept),
                 targets = pixel_targets(small_images(), model.config());
    ASSERT_EQ(predictions.shape(), (Shape{2, 12, 8}));
    const Tensor images = with_new_patch(5), others = pixel_targets(images, model.config());
    EXPECT_TRUE(close(model.forward(images, kKept), predictions, 0));
    for (int64_t patch = 0; patch < 12; ++patch) {
      const bool same = close(others.select(0, 0).select(0, patch), targets.select(0, 0).select(0, patch), 1e-3);
      EXPECT_EQ(same, patch != 5) << patch;
    }
    EXPECT_NE(pixel_loss(predictions, images, kKept, model.config()).item<double>(),
              pixel_loss(predictions, small_images(), kKept, model.config()).item<double>());
  }
}

TEST(MaskedAutoencoder, PixelsOfKeptPatchesAreInputsAlone) {
  for (const bool norm_pix : {false, true}) {
    const MaskedAutoencoder model = random_mae(norm_pix);
    const Tensor predictions = model.forward(small_images(), kKept);
    const Tensor images = with_new_patch(7);
    const Tensor others = model.forward(images, kKept);
    for (int64_t patch = 0; patch < 12; ++patch)
      EXPECT_FALSE(close(others.select(0, 0).select(0, patch), predictions.select(0, 0).select(0, patch), 1e-4));
    EXPECT_TRUE(close(others.select(0, 1), predictions.select(0, 1), 0)) << "the other image";
    EXPECT_EQ(pixel_loss(predictions, images, kKept, model.config()).item<double>(),
              pixel_loss(predictions, small_images(), kKept, model.config()).item<double>())
        << "its target is in no loss";
  }
}

// The order of kept patches is no information: only their places count.
TEST(MaskedAutoencoder, PredictsTheSameForAnyOrderOfKeptPatches) {
  const MaskedAutoencoder model = random_mae();
  const PatchIndices reordered{{7, 3, 0}, {11, 1, 2}};
  EXPECT_TRUE(close(model.forward(small_images(), reordered), model.forward(small_images(), kKept), 1e-12));
}

TEST(MaskedAutoencoder, PredictsImagesOfAnotherSize) {
  const MaskedAutoencoder model = random_mae();
  const Tensor larger = Tensor::randn({1, 1, 12, 12}, 3, DType::f64);
  EXPECT_EQ(model.forward(larger, {{0, 17}}).shape(), (Shape{1, 18, 8}));
  const Tensor predictions = model.forward(larger, {{0, 17}});
  EXPECT_EQ(reconstruction(predictions, larger, {{0, 17}}, model.config()).reconstructed.shape(), larger.shape());
}

TEST(MaskedAutoencoder, BeginsWithTheAuthorsInitialisation) {
  const MaskedAutoencoder model = random_mae();
  for (const auto& [name, dim] :
       {std::pair<std::string, int64_t>{"encoder.pos_embed", 16}, {"decoder.pos_embed", 12}}) {
    const Tensor positions = model.parameter(name);
    EXPECT_TRUE(close(positions.narrow(1, 0, 3), Tensor::zeros({1, 3, dim}), 0)) << name;
    EXPECT_TRUE(close(positions.narrow(1, 3, 12), nn::sincos_positions_2d({2, 6}, dim), 0)) << name;
  }
  // U(−b, b) with b = √(6 / (fan in + fan out)): the largest of 96 draws is above 0.9 b but for a chance of 4e-5.
  const auto expect_xavier = [&](const std::string& name, double fans) {
    const Tensor weight = model.parameter(name);
    double largest = 0;
    for (int64_t i = 0; i < weight.numel(); ++i) largest = std::max(largest, std::abs(weight.data<double>()[i]));
    EXPECT_LE(largest, std::sqrt(6 / fans)) << name;
    EXPECT_GT(largest, 0.9 * std::sqrt(6 / fans)) << name;
  };
  expect_xavier("encoder.patch_embed.proj.weight", 8 + 16);
  expect_xavier("encoder.blocks.0.attn.qkv.weight", 16 + 48);
  expect_xavier("encoder.blocks.1.mlp.fc1.weight", 16 + 64);
  expect_xavier("decoder.embed.weight", 16 + 12);
  expect_xavier("decoder.blocks.0.mlp.fc2.weight", 20 + 12);
  expect_xavier("decoder.pred.weight", 12 + 8);
  for (const char* name : {"encoder.blocks.0.attn.qkv.bias", "decoder.embed.bias", "decoder.blocks.0.mlp.fc1.bias"})
    EXPECT_TRUE(close(model.parameter(name), Tensor::zeros(model.parameter(name).shape()), 0)) << name;
  for (const char* name : {"encoder.cls_token", "encoder.reg_token", "decoder.mask_token"}) {
    EXPECT_TRUE(close(model.parameter(name), Tensor::zeros(model.parameter(name).shape()), 0.1)) << name;
    EXPECT_FALSE(close(model.parameter(name), Tensor::zeros(model.parameter(name).shape()), 0.005)) << name;
  }
}

// The patch of the second image's first kept index is in its place in both images; masked ones are 0 or predicted.
TEST(MaskedAutoencoder, ReconstructsMaskedPatchesInTheirPlaces) {
  for (const bool norm_pix : {false, true}) {
    const MaskedAutoencoder model = random_mae(norm_pix);
    const Tensor predictions = model.forward(small_images(), kKept);
    const auto [masked, reconstructed] = reconstruction(predictions, small_images(), kKept, model.config());
    ASSERT_EQ(masked.shape(), small_images().shape());
    const Tensor patches = ops::patchify(small_images(), 4, 2);
    const Tensor shown = ops::patchify(reconstructed, 4, 2), zeroed = ops::patchify(masked, 4, 2);
    const PatchStatistics own = patch_statistics(patches);
    const Tensor expected = norm_pix ? denormalized_patches(predictions, own) : predictions;
    const PatchIndices masked_indices = masked_patches(kKept, 12);
    for (int64_t i = 0; i < 24; ++i) {
      const auto at = [&](const Tensor& all) { return all.select(0, i / 12).select(0, i % 12); };
      const std::vector<int64_t>& of_image = masked_indices[static_cast<size_t>(i / 12)];
      const bool is_masked = std::ranges::find(of_image, i % 12) != of_image.end();
      EXPECT_TRUE(close(at(shown), is_masked ? at(expected) : at(patches), 0)) << i;
      EXPECT_TRUE(close(at(zeroed), is_masked ? Tensor::zeros({8}) : at(patches), 0)) << i;
    }
  }
}

// Mean 2 and squares 4, 0, 0, 4, divided by 4 − 1.
TEST(PatchPixels, AreNormalisedByTheUnbiasedVariance) {
  const Tensor patches = Tensor::from<double>({1, 1, 4}, {0, 2, 2, 4});
  const PatchStatistics statistics = patch_statistics(patches);
  EXPECT_DOUBLE_EQ(statistics.mean.item<double>(), 2);
  const double deviation = std::sqrt(8.0 / 3 + 1e-6);
  EXPECT_DOUBLE_EQ(statistics.deviation.item<double>(), deviation);
  const Tensor normalized = normalized_patches(patches, statistics);
  EXPECT_TRUE(close(normalized, Tensor::from<double>({1, 1, 4}, {-2 / deviation, 0, 0, 2 / deviation}), 1e-15));
  EXPECT_TRUE(close(denormalized_patches(normalized, statistics), patches, 1e-15));
  const Tensor constant = Tensor::full({1, 1, 4}, 3);
  EXPECT_TRUE(close(normalized_patches(constant, patch_statistics(constant)), Tensor::zeros({1, 1, 4}), 0));
  EXPECT_EQ(error_of([] {
              patch_statistics(Tensor::zeros({1, 2, 1}));
            }),
            "patch statistics: expected patches [B, N, pixels] of at least 2 pixels, got [1, 2, 1]");
}

TEST(PatchPixels, BecomeTheImageThatTheyAreOf) {
  const Tensor images = Tensor::randn({2, 3, 8, 6}, 1);
  EXPECT_TRUE(close(image_of_patches(ops::patchify(images, 4, 2), {2, 3}, {4, 2}), images, 0));
  EXPECT_EQ(error_of([] {
              image_of_patches(Tensor::zeros({1, 5, 24}), {2, 3}, {4, 2});
            }),
            "image of patches: expected [B, 6, C·4·2], got [1, 5, 24]");
}

}  // namespace
}  // namespace vitrail::models
