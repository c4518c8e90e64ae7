// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/precision.h"
#include "vitrail/train/objectives/classification/training_step_internal.h"
#include "vitrail/train/run/non_finite_internal.h"

namespace vitrail::train {
namespace {

int64_t count_correct(const models::VisionTransformer::Heads& heads, const Tensor& labels) {
  const autograd::NoGrad no_grad;
  const Tensor values = heads.average().to(DType::f32).contiguous();
  const int64_t classes = values.size(1);
  int64_t correct = 0;
  for (int64_t i = 0; i < values.size(0); ++i) {
    const float* row = values.data<float>() + i * classes;
    correct += std::max_element(row, row + classes) - row == labels.data<int64_t>()[i];
  }
  return correct;
}

// A batch of one black image, for a process that could read none of its images: it must take part in the all-reduce of
// gradients.  The image has weight 0 in the loss.
data::Batch placeholder_batch(const data::Batch& empty) {
  Shape shape = empty.images.shape();
  shape[0] = 1;
  data::Batch batch;
  batch.images = Tensor::zeros(shape);
  batch.labels = Tensor::zeros({1}, DType::i64);
  batch.positions = {0};
  return batch;
}

}  // namespace

TrainingStep::TrainingStep(const Recipe& recipe, models::VisionTransformer& model, const ProcessGroup& group,
                           std::unique_ptr<Teacher> teacher, Tensor class_weights)
    : recipe_(recipe),
      group_(group),
      model_(model),
      teacher_(std::move(teacher)),
      class_weights_(std::move(class_weights)) {
  model_.checkpoint_blocks(recipe.model.activation_checkpointing);
}

void TrainingStep::set_patch_drop(double epochs) {
  model_.drop_patches_in_training(patch_drop_rate(recipe_, model_.config(), epochs));
}

// Labels are smoothed here; mixed targets were smoothed when the loader made them.  With a teacher, the class head of a
// distilled model learns from the labels and its distillation head from the teacher (Touvron et al. 2021, section 4).
// Without a teacher, the loss is that of their average, as in fine-tuning.
Tensor TrainingStep::loss_of(const models::VisionTransformer::Heads& heads, const data::Batch& batch) const {
  const bool separate_heads = teacher_ && heads.distilled.defined();
  const Tensor logits = separate_heads ? heads.classes : heads.average();
  const LossRecipe& recipe = recipe_.loss;
  const bool mixed = batch.targets.defined();
  const Tensor& targets = mixed ? batch.targets : batch.labels;
  const double smoothing = mixed ? 0 : recipe.label_smoothing;
  const Tensor loss =
      recipe.name == "bce"
          ? ops::bce_with_logits(
                logits, targets,
                {.label_smoothing = smoothing, .threshold = recipe.bce_threshold, .sum_classes = recipe.bce_sum})
          : ops::cross_entropy(logits, targets, smoothing, class_weights_);
  if (!teacher_) return loss;
  const DistillationRecipe& distillation = *recipe.distillation;
  const Tensor distillation_loss =
      ops::distillation(separate_heads ? heads.distilled : logits, teacher_->logits(batch),
                        {.hard = distillation.kind == "hard", .temperature = distillation.temperature});
  return ops::weighted_sum({loss, distillation_loss}, {1 - distillation.alpha, distillation.alpha});
}

// The divisor of the mean loss (ops::cross_entropy).
double TrainingStep::weight_of(const data::Batch& batch) const {
  if (!class_weights_.defined() || batch.targets.defined()) return static_cast<double>(batch.labels.numel());
  double weight = 0;
  for (int64_t i = 0; i < batch.labels.numel(); ++i)
    weight += class_weights_.data<float>()[batch.labels.data<int64_t>()[i]];
  return weight;
}

BatchResult TrainingStep::accumulate(const data::Batch& given, const BatchPosition& position,
                                     const Backward& backward) {
  BatchResult local{.images = given.images.size(0)};
  if (local.images == 0 && group_.size() == 1) return local;
  const data::Batch batch = local.images > 0 ? given : placeholder_batch(given);
  const nn::RandomScope random(recipe_.seed, position.number, batch.positions);
  const ops::MixedPrecision precision(recipe_.precision == "bf16" ? DType::bf16 : DType::f32);
  set_patch_drop(position.epochs);
  model_.train();
  const models::VisionTransformer::Heads heads = model_.forward_heads(batch.images);
  const Tensor loss = loss_of(heads, batch);
  if (local.images > 0) {
    local.weight = weight_of(batch);
    local.correct = count_correct(heads, batch.labels);
    if (const double value = loss.item<double>(); !std::isfinite(value))
      local.problem = str("the loss is ", value, "; first not finite: ", first_non_finite_layer(model_, batch.images));
  }
  return backward(loss, local);
}

}  // namespace vitrail::train
