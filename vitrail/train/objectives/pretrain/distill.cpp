// SPDX-License-Identifier: Apache-2.0
// Distillation of features: the model learns the pooled features of a teacher, which sees the same augmented images.
// The loss is RADIO's (Ranzinger et al. 2024, arXiv 2312.06709): 1 − the cosine of both.
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/l2_normalize.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/train/objectives/classification/teacher_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/run/dataset_identity_internal.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {
namespace {

// The student's features in the teacher's width.
class DistillProjection : public nn::Module {
 public:
  DistillProjection(int64_t features, int64_t teacher, const ParamSource& params)
      : projection_(features, teacher, true, params.child("projection")) {}
  Tensor forward(const Tensor& features) const { return projection_.forward(features).to(features.dtype()); }
  std::string type() const override { return "DistillProjection"; }
  void visit(nn::Visitor& visitor) override { visitor.child("projection", projection_); }

 private:
  nn::Linear projection_;
};

class Distill : public PretrainMethod {
 public:
  explicit Distill(const PretrainContext& context)
      : context_(context),
        teacher_(pretrain_of(context.recipe).teacher, context.transform),
        params_(context.recipe.seed),
        layers_(models::feature_width_of(context.model.config()), teacher_.width(), ParamSource(params_, "pretrain")) {
    const int64_t views = pretrain_of(context.recipe).views;
    // With several processes an image moves between them, and only rank 0 writes files.
    if (views > 0 && context.group.size() == 1)
      teacher_.use_cache(context.folder / "checkpoints", context.recipe, {.count = views},
                         dataset_identity(context.images.dataset));
  }
  nn::Module& layers() override { return layers_; }

  // ‖s − t‖² of two vectors of length 1 is 2 − 2 cos.
  Tensor loss(const PretrainBatch& batch) override {
    const Tensor features = layers_.forward(context_.model.forward(batch.data.images));
    const Tensor error = ops::mean_squared_error(ops::l2_normalize(features), targets(batch));
    return ops::weighted_sum({error}, {0.5 * static_cast<double>(teacher_.width())});
  }

 private:
  Tensor targets(const PretrainBatch& batch) {
    const autograd::NoGrad no_grad;
    if (!batch.held_out) return ops::l2_normalize(teacher_.logits(batch.data));
    // Held-out images are the same in each epoch.
    Tensor& rows = held_out_[batch.number];
    if (!rows.defined()) rows = ops::l2_normalize(teacher_.logits(batch.data.images));
    return rows;
  }

  const PretrainContext context_;
  Teacher teacher_;
  RandomParams params_;
  DistillProjection layers_;
  std::map<uint64_t, Tensor> held_out_;  // by the number of the batch
};

std::unique_ptr<PretrainMethod> make_distill(const PretrainContext& context) {
  if (pretrain_of(context.recipe).teacher.empty())
    throw Error("pretrain.teacher", "a model, for the method \"distill\"", "none");
  return std::make_unique<Distill>(context);
}

}  // namespace

PretrainMethodRow distill_method() {
  return {.name = "distill",
          .make = make_distill,
          .reason = "the model learns the teacher's features of these images",
          .loss_note = "1 minus the cosine between the features and the teacher's: it should fall towards 0.",
          .has_held_out_loss = true,
          .fields = {"teacher", "views"},
          .defaults = {.max_batch = 64,
                       .epochs = 4,
                       .scratch_epochs = 10,
                       .lr = 1e-4,
                       .scratch_lr = 5e-4,
                       .augment = strong_augmentation(0.2)},
          .set_views = [](const Recipe& recipe, int64_t, data::LoaderOptions& options) {
            options.augment->views = pretrain_of(recipe).views;
          }};
}

}  // namespace vitrail::train
