// SPDX-License-Identifier: Apache-2.0
// DINO (Caron et al. 2021, arXiv 2104.14294): the model learns from views of an image what its own moving average, the
// teacher, says of other views.  The teacher is saved.

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/l2_normalize.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/run/low_rank_internal.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {
namespace {

constexpr double kStudentTemperature = 0.1, kCenterMomentum = 0.9;
constexpr int64_t kGlobalViews = 2, kBottleneck = 256;

Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, Tensor::full({1}, factor, x.dtype())); }

// Features [R, D] → logits of the prototypes [R, K], by directions of length 1 (weight normalisation with g = 1).
class DinoHead : public nn::Module {
 public:
  DinoHead(int64_t features, int64_t hidden, int64_t prototypes, const ParamSource& params)
      : Module(params.path()),
        fc1_(features, hidden, true, params.child("fc1"), kInit),
        fc2_(hidden, hidden, true, params.child("fc2"), kInit),
        fc3_(hidden, kBottleneck, true, params.child("fc3"), kInit),
        last_(params.get("last_layer", {prototypes, kBottleneck}, nn::init::truncated_normal(0.02))) {}

  // learns_last: whether the last layer gets a gradient.
  Tensor forward(const Tensor& features, bool learns_last) const {
    const Tensor hidden = fc2_.forward(fc1_.forward(features, kGelu), kGelu);
    const Tensor directions = ops::l2_normalize(fc3_.forward(hidden).to(features.dtype()));
    const Tensor prototypes = ops::l2_normalize(learns_last ? last_ : last_.detach());
    return ops::linear(directions, prototypes, {}).to(features.dtype());
  }
  std::string type() const override { return "DinoHead"; }
  void visit(nn::Visitor& visitor) override {
    visitor.child("fc1", static_cast<nn::Module&>(fc1_));
    visitor.child("fc2", static_cast<nn::Module&>(fc2_));
    visitor.child("fc3", static_cast<nn::Module&>(fc3_));
    visitor.parameter("last_layer", last_);
  }

 private:
  static constexpr kernels::Activation kGelu = kernels::Activation::gelu;
  static inline const nn::init::LinearInit kInit{nn::init::truncated_normal(0.02), nn::init::zeros()};

  nn::Linear fc1_, fc2_, fc3_;
  Tensor last_;
};

models::VisionTransformer copy_of(const models::VisionTransformer& model) {
  nn::CopiedParams params(model);
  return {model.config(), ParamSource(params)};
}

// The student's head, the teacher, and the centre of the teacher's logits [1, K].
struct DinoLayers : nn::Module {
  DinoLayers(const models::VisionTransformer& model, const PretrainRecipe& pretrain, const ParamSource& params)
      : head(models::feature_width_of(model.config()), pretrain.projector_dim, pretrain.prototypes,
             params.child("head")),
        teacher(copy_of(model)),
        // The same draws as those of the student's head.
        teacher_head(models::feature_width_of(model.config()), pretrain.projector_dim, pretrain.prototypes,
                     params.child("head")),
        center(Tensor::zeros({1, pretrain.prototypes})) {}
  std::string type() const override { return "DinoLayers"; }
  void visit(nn::Visitor& visitor) override {
    visitor.child("head", static_cast<nn::Module&>(head));
    visitor.child("teacher", static_cast<nn::Module&>(teacher));
    visitor.child("teacher_head", static_cast<nn::Module&>(teacher_head));
    visitor.parameter("center", center);
  }

  DinoHead head;
  models::VisionTransformer teacher;
  DinoHead teacher_head;
  Tensor center;
};

class Dino : public PretrainMethod {
 public:
  explicit Dino(const PretrainContext& context)
      : context_(context),
        pretrain_(pretrain_of(context.recipe)),
        params_(context.recipe.seed),
        layers_(context.model, pretrain_, ParamSource(params_, "pretrain")) {}
  nn::Module& layers() override { return layers_; }
  std::vector<std::string> frozen() const override {
    return {"pretrain.teacher.*", "pretrain.teacher_head.*", "pretrain.center"};
  }
  Saved saved() const override { return {&layers_.teacher, "pretrain.teacher."}; }

  // The mean over the pairs of a global view of the teacher and another view of the student.
  Tensor loss(const PretrainBatch& batch) override {
    const auto images = std::ssize(batch.data.samples);
    const Tensor student =
        scaled(layers_.head.forward(features_of_views(context_.model, batch.data), batch.epochs >= 1),
               1 / kStudentTemperature);
    const Tensor targets = teacher_targets(batch.data);
    const Tensor first = targets.narrow(0, 0, images), second = targets.narrow(0, images, images);
    const Tensor of_global =
        ops::cross_entropy(student.narrow(0, 0, kGlobalViews * images), ops::cat({second, first}, 0));
    const int64_t locals = student.size(0) / images - kGlobalViews;
    if (locals == 0) return of_global;
    const Tensor mean = scaled(ops::add(first, second), 0.5);
    const Tensor repeated = ops::contiguous(mean.view({1, images, mean.size(1)}).expand({locals, images, mean.size(1)}))
                                .view({locals * images, mean.size(1)});
    const Tensor of_local = ops::cross_entropy(student.narrow(0, kGlobalViews * images, locals * images), repeated);
    const auto pairs = static_cast<double>(kGlobalViews + kGlobalViews * locals);
    return ops::weighted_sum({of_global, of_local},
                             {kGlobalViews / pairs, static_cast<double>(kGlobalViews * locals) / pairs});
  }

  // The momentum rises to 1 by a cosine.
  void end_step(double progress) override {
    const double momentum = optim::cosine_between(pretrain_.momentum, 1, progress);
    optim::update_average(layers_.teacher.named_parameters(),
                          merged(context_.recipe, context_.model.named_parameters()), momentum);
    optim::update_average(layers_.teacher_head.named_parameters(), layers_.head.named_parameters(), momentum);
  }

 private:
  // softmax((h − c) / τ) of the global views [2 · B, K].  Moves the centre towards the mean of h for the next step.
  Tensor teacher_targets(const data::Batch& batch) {
    const autograd::NoGrad no_grad;
    layers_.teacher.eval();
    std::vector<Tensor> features;
    for (int64_t view = 0; view < kGlobalViews; ++view)
      features.push_back(layers_.teacher.forward(batch.views[static_cast<size_t>(view)]));
    const Tensor logits = layers_.teacher_head.forward(ops::cat(features, 0), true);
    const Tensor centered = ops::add(logits, scaled(layers_.center, -1));
    Tensor targets = ops::softmax(scaled(centered, 1 / pretrain_.teacher_temperature));
    update_center(logits);
    return targets;
  }

  void update_center(const Tensor& logits) {
    const int64_t rows = logits.size(0), columns = logits.size(1);
    std::vector<double> sums(static_cast<size_t>(columns) + 1);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) sums[static_cast<size_t>(c)] += logits.data<float>()[r * columns + c];
    }
    sums.back() = static_cast<double>(rows);
    context_.group.all_reduce_sum(sums);
    for (int64_t c = 0; c < columns; ++c) {
      float& center = layers_.center.data<float>()[c];
      const double mean = sums[static_cast<size_t>(c)] / sums.back();
      center = static_cast<float>(kCenterMomentum * center + (1 - kCenterMomentum) * mean);
    }
  }

  const PretrainContext context_;
  const PretrainRecipe& pretrain_;
  RandomParams params_;
  DinoLayers layers_;
};

// Two global views, each with a blur of its own, and the local ones.
void set_dino_views(const Recipe& recipe, int64_t patch, data::LoaderOptions& options) {
  std::vector<data::ViewGroup> groups = multi_crop(recipe, patch, options);
  data::ViewGroup global = groups.front();
  global.count = 1;
  groups.front() = global;
  groups.insert(groups.begin() + 1, global);
  groups[0].augment.blur = data::RandomBlur{.probability = 1};
  groups[1].augment.blur = data::RandomBlur{.probability = 0.1};
  groups[1].augment.solarize = data::RandomSolarize{.probability = 0.2};
  if (groups.size() > 2) groups[2].augment.blur = data::RandomBlur{.probability = 0.5};
  options.views = groups;
}

std::unique_ptr<PretrainMethod> make_dino(const PretrainContext& context) {
  const int64_t views = pretrain_of(context.recipe).global_views;
  if (views != kGlobalViews) throw Error("pretrain.global_views", "2, for the method \"dino\"", str(views));
  return std::make_unique<Dino>(context);
}

}  // namespace

PretrainMethodRow dino_method() {
  return {
      .name = "dino",
      .make = make_dino,
      .reason = "the model learns from views what its moving average says of other views",
      .loss_note =
          "It begins near the logarithm of the number of prototypes and should fall. It may rise for a while, because "
          "the teacher changes too. If it stays there, the teacher tells nothing.",
      .fields = {"global_views", "global_scale", "local_views", "local_scale", "local_size", "projector_dim",
                 "prototypes", "momentum", "teacher_temperature"},
      .defaults = {.max_batch = 64,
                   .lr = 2.5e-5,
                   .scratch_lr = 2.5e-4,
                   .weight_decay = 0.04,
                   .final_weight_decay = 0.4,
                   .clip = 3,
                   .clip_per_tensor = true,
                   .augment = strong_augmentation(0.4)},
      .choose =
          [](PretrainRecipe& pretrain, int64_t) {
            pretrain.global_scale = {0.4, 1};
            pretrain.local_scale = {0.05, 0.4};
          },
      .set_views = set_dino_views,
      .has_local_views = true,
      .cost =
          [](const PretrainRecipe& pretrain) {
            constexpr double kTeacher = 2 / 3.0;  // two views without a backward pass
            return multi_crop_cost(pretrain) + kTeacher;
          }};
}

}  // namespace vitrail::train
