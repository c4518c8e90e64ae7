// SPDX-License-Identifier: Apache-2.0
// Masked autoencoders (He et al. 2022, arXiv 2111.06377): the model sees a part of the patches, and a decoder predicts
// the pixels of the others.
#include "vitrail/base/error.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/models/mae/decoder.h"
#include "vitrail/models/mae/initial_params.h"
#include "vitrail/models/mae/patch_masks.h"
#include "vitrail/models/mae/pixel_loss.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kHeadWidth = 32;  // channels of a head of the decoder's attention

// Two thirds of the encoder's width, as the published models have, in whole heads.
int64_t default_decoder_dim(int64_t encoder_dim) {
  return std::max<int64_t>(1, (2 * encoder_dim / 3 + kHeadWidth / 2) / kHeadWidth) * kHeadWidth;
}

models::MaskedAutoencoderConfig config_of(const PretrainContext& context) {
  const PretrainRecipe& pretrain = pretrain_of(context.recipe);
  models::MaskedAutoencoderConfig config{.encoder = context.model.config()};
  config.encoder.num_classes = 0;
  config.decoder_dim = pretrain.decoder_dim > 0 ? pretrain.decoder_dim : default_decoder_dim(config.encoder.embed_dim);
  config.decoder_depth = pretrain.decoder_depth;
  config.decoder_heads = std::max<int64_t>(1, config.decoder_dim / kHeadWidth);
  config.decoder_mlp_hidden = 4 * config.decoder_dim;
  config.mask_ratio = pretrain.mask_ratio;
  config.norm_pix = pretrain.norm_pix;
  return models::checked(config);
}

class Mae : public PretrainMethod {
 public:
  explicit Mae(const PretrainContext& context)
      : context_(context),
        config_(config_of(context)),
        random_(context.recipe.seed),
        params_(config_, random_),
        decoder_(config_, ParamSource(params_, "pretrain")) {
    const ModelRecipe& model = context.recipe.model;
    if (model.init.empty() && model.positions == "drawn" && !model.mimetic) draw_encoder();
  }
  nn::Module& layers() override { return decoder_; }

  std::vector<std::string> frozen() const override {
    std::vector<std::string> names{"pretrain.pos_embed"};
    if (has_fixed_positions()) names.emplace_back("pos_embed");
    return names;
  }

  Tensor loss(const PretrainBatch& batch) override {
    const Tensor& images = batch.data.images;
    const models::PatchIndices kept = draw_kept(batch);
    return models::pixel_loss(predictions(images, kept), images, kept, config_);
  }

  std::vector<Tensor> predicted_images(const Tensor& images) const override {
    std::vector<int64_t> numbers(static_cast<size_t>(images.size(0)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
    const models::PatchIndices kept =
        models::draw_kept_patches(context_.recipe.seed, 0, numbers, patches_of(images), config_.mask_ratio);
    const models::Reconstruction shown = models::reconstruction(predictions(images, kept), images, kept, config_);
    return {shown.masked, shown.reconstructed};
  }

 private:
  // A new encoder starts as the authors' does.
  void draw_encoder() const {
    RandomParams random(context_.recipe.seed);
    models::MaeInitialParams params(config_, random);
    const models::VisionTransformer drawn(config_.encoder, ParamSource(params));
    for (const nn::NamedTensor& parameter : drawn.named_parameters())
      context_.model.parameter(parameter.name).copy_(parameter.tensor);
  }

  // Positions of sines and cosines are not trained.
  bool has_fixed_positions() const {
    const ModelRecipe& model = context_.recipe.model;
    return config_.encoder.pos_embed == models::PositionEmbedding::learned && model.init.empty();
  }

  int64_t patches_of(const Tensor& images) const {
    const std::array<int64_t, 2> grid = context_.model.grid_of(images.size(2), images.size(3));
    return grid[0] * grid[1];
  }

  // A mask is a function of the epoch and the image; held-out images have the same in each epoch.
  models::PatchIndices draw_kept(const PretrainBatch& batch) const {
    const auto epoch = batch.held_out ? 0 : static_cast<uint64_t>(batch.epochs);
    return models::draw_kept_patches(context_.recipe.seed, epoch, batch.data.samples, patches_of(batch.data.images),
                                     config_.mask_ratio);
  }

  Tensor predictions(const Tensor& images, const models::PatchIndices& kept) const {
    return decoder_.forward(context_.model.encode(images, kept), kept,
                            context_.model.grid_of(images.size(2), images.size(3)));
  }

  const PretrainContext context_;
  models::MaskedAutoencoderConfig config_;
  RandomParams random_;
  models::MaeInitialParams params_;
  models::MaeDecoder decoder_;
};

// The encoder's share of the patches, and the decoder relative to a model of usual depth.
double mae_cost(const PretrainRecipe& pretrain) {
  return 1.2 * (1 - pretrain.mask_ratio) + 0.05 * pretrain.decoder_depth;
}

}  // namespace

PretrainMethodRow mae_method() {
  data::AugmentOptions augment;
  augment.flip = data::Flip::random;
  augment.random_resized_crop = data::RandomResizedCrop{.scale = {0.2, 1}};
  return {.name = "mae",
          .make = [](const PretrainContext& context) { return std::make_unique<Mae>(context); },
          .reason =
              "the model sees a quarter of each image, so that a new model sees many images; judge it by "
              "fine-tuning, not by k-NN",
          .loss_note =
              "The mean squared error of the masked patches. With normalised patches it begins near 1 and should keep "
              "falling, ever more slowly.",
          .has_held_out_loss = true,
          .watches_rank = false,  // the decoder keeps them apart, and the rank of a new model is small at first
          .loss_decides = true,
          .fields = {"mask_ratio", "norm_pix", "decoder_dim", "decoder_depth"},
          .defaults = {.max_batch = 256,
                       .epochs = 4,
                       .scratch_epochs = 20,
                       .lr = 7.5e-5,
                       .scratch_lr = 3e-4,
                       .beta2 = 0.95,
                       .augment = augment},
          .cost = mae_cost,
          .keeps_layers = true,
          .norm_before_pooling = true};
}

}  // namespace vitrail::train
