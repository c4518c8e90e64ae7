// SPDX-License-Identifier: Apache-2.0
// LeJEPA (Balestriero & LeCun 2025, arXiv 2511.08544): views of an image have close projections, and a regulariser
// keeps the projections of a batch close to draws of N(0, I).
#include "vitrail/base/error.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/batch_norm.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/ops/random_directions.h"
#include "vitrail/ops/sigreg.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/visreg.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/run/gather_rows_internal.h"

namespace vitrail::train {
namespace {

constexpr double kNormEps = 1e-5;  // that of torch.nn.BatchNorm1d

// Batch normalisation by the statistics of each batch, and ReLU.
class BatchNormRelu : public nn::Module {
 public:
  BatchNormRelu(int64_t features, const ParamSource& params)
      : Module(params.path()),
        weight_(params.get("weight", {features}, nn::init::ones())),
        bias_(params.get("bias", {features}, nn::init::zeros())) {}
  Tensor forward(const Tensor& x) const {
    return ops::activation(ops::batch_norm(x, weight_, bias_, kNormEps), kernels::Activation::relu);
  }
  std::string type() const override { return "BatchNormRelu"; }
  void visit(nn::Visitor& visitor) override {
    visitor.parameter("weight", weight_);
    visitor.parameter("bias", bias_);
  }

 private:
  Tensor weight_, bias_;
};

// Two hidden layers: features [R, D] → projections [R, K].
class Projector : public nn::Module {
 public:
  Projector(int64_t features, int64_t hidden, int64_t out, const ParamSource& params)
      : fc1_(features, hidden, true, params.child("fc1")),
        norm1_(hidden, params.child("norm1")),
        fc2_(hidden, hidden, true, params.child("fc2")),
        norm2_(hidden, params.child("norm2")),
        fc3_(hidden, out, true, params.child("fc3")) {}
  Tensor forward(const Tensor& features) const {
    const Tensor hidden = norm1_.forward(fc1_.forward(features).to(features.dtype()));
    return fc3_.forward(norm2_.forward(fc2_.forward(hidden).to(features.dtype()))).to(features.dtype());
  }
  std::string type() const override { return "Projector"; }
  void visit(nn::Visitor& visitor) override {
    visitor.child("fc1", static_cast<nn::Module&>(fc1_));
    visitor.child("norm1", static_cast<nn::Module&>(norm1_));
    visitor.child("fc2", static_cast<nn::Module&>(fc2_));
    visitor.child("norm2", static_cast<nn::Module&>(norm2_));
    visitor.child("fc3", static_cast<nn::Module&>(fc3_));
  }

 private:
  nn::Linear fc1_;
  BatchNormRelu norm1_;
  nn::Linear fc2_;
  BatchNormRelu norm2_;
  nn::Linear fc3_;
};

class Lejepa : public PretrainMethod {
 public:
  explicit Lejepa(const PretrainContext& context)
      : context_(context),
        pretrain_(pretrain_of(context.recipe)),
        params_(context.recipe.seed),
        layers_(models::feature_width_of(context.model.config()), pretrain_.projector_dim, pretrain_.projection_dim,
                ParamSource(params_, "pretrain")) {}
  nn::Module& layers() override { return layers_; }

  Tensor loss(const PretrainBatch& batch) override {
    const Tensor z = projections(batch);
    const double lambda = pretrain_.lambda.value_or(pretrain_.regularizer == "sigreg" ? 0.02 : 0.6);
    const Tensor directions =
        ops::random_directions(z.size(2), pretrain_.directions, context_.recipe.seed, batch.number);
    const Tensor invariance = ops::mean_squared_error(z, centers_of(z));
    if (pretrain_.regularizer == "sigreg")
      return ops::weighted_sum({invariance, ops::sigreg(z, directions)}, {1 - lambda, lambda});
    const ops::VisregTerms terms = ops::visreg(z, directions);
    return ops::weighted_sum({invariance, terms.center, terms.scale, terms.shape},
                             {1 - lambda, lambda, lambda, lambda});
  }

 private:
  // [V, B, K]
  Tensor projections(const PretrainBatch& batch) const {
    Tensor rows = features_of_views(context_.model, batch.data);
    const int64_t views = rows.size(0) / std::ssize(batch.data.samples);
    if (!batch.held_out) rows = gather_rows(rows, views, context_.group);
    return layers_.forward(rows).view({views, rows.size(0) / views, pretrain_.projection_dim});
  }

  // The mean over the global views of each image, for each view.  It has a gradient.
  Tensor centers_of(const Tensor& z) const {
    const Tensor mean = ops::mean(z.narrow(0, 0, pretrain_.global_views), 0);
    return ops::contiguous(mean.view({1, z.size(1), z.size(2)}).expand(z.shape()));
  }

  const PretrainContext context_;
  const PretrainRecipe& pretrain_;
  RandomParams params_;
  Projector layers_;
};

// Local views of small images would be a few patches.
void choose_views(PretrainRecipe& pretrain, int64_t side) {
  constexpr int64_t kSmall = 96;
  if (side >= kSmall) return;
  pretrain.global_views = 4;
  pretrain.global_scale = {0.08, 1};
  pretrain.local_views = 0;
}

}  // namespace

PretrainMethodRow lejepa_method() {
  return {.name = "lejepa",
          .make = [](const PretrainContext& context) { return std::make_unique<Lejepa>(context); },
          .reason = "views of an image become alike while the features stay spread: for any number of images",
          .loss_note = "It should fall fast in the first epochs and then slowly.",
          .has_held_out_loss = true,
          .fields = {"global_views", "global_scale", "local_views", "local_scale", "local_size", "regularizer",
                     "lambda", "directions", "projector_dim", "projection_dim"},
          .defaults = {.max_batch = 128, .final_lr = 1e-3, .augment = strong_augmentation(0.3)},
          .choose = choose_views,
          .set_views = [](const Recipe& recipe, int64_t patch,
                          data::LoaderOptions& options) { options.views = multi_crop(recipe, patch, options); },
          .has_local_views = true,
          .cost = multi_crop_cost};
}

}  // namespace vitrail::train
