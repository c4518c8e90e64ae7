// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/precision.h"
#include "vitrail/optim/gradients.h"
#include "vitrail/train/finite_report.h"
#include "vitrail/train/training_step_internal.h"

namespace vitrail::train {
namespace {

optim::ScheduleOptions schedule_options(const Recipe& recipe, int64_t steps_per_epoch) {
  const ScheduleRecipe& from = recipe.schedule;
  auto steps = [&](double epochs) { return std::llround(epochs * static_cast<double>(steps_per_epoch)); };
  optim::ScheduleOptions to;
  to.kind = from.name;
  to.rate = recipe.lr;
  to.final_rate = from.final_lr;
  to.total_steps = recipe.epochs * steps_per_epoch;
  to.warmup_steps = steps(from.warmup_epochs);
  to.warmup_rate = from.warmup_lr;
  to.warmup_prefix = from.warmup_prefix;
  to.decay_steps = steps(from.decay_epochs);
  to.decay_factor = from.decay_factor;
  return to;
}

optim::GroupOptions group_options(const Recipe& recipe) {
  optim::GroupOptions groups = recipe.groups;
  groups.frozen = recipe.model.freeze;
  if (recipe.model.linear_probe) groups.frozen.push_back("regex:(?!head).*");
  return groups;
}

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

// A process whose images could all not be read takes its part in the exchange with a black one, which counts for none.
data::Batch stand_in(const data::Batch& empty) {
  Shape shape = empty.images.shape();
  shape[0] = 1;
  data::Batch batch;
  batch.images = Tensor::zeros(shape);
  batch.labels = Tensor::zeros({1}, DType::i64);
  batch.positions = {0};
  return batch;
}

}  // namespace

TrainingStep::TrainingStep(const Recipe& recipe, models::VisionTransformer& model, int64_t steps_per_epoch,
                           std::unique_ptr<Teacher> teacher, const ProcessGroup& crew)
    : recipe_(recipe),
      crew_(crew),
      model_(model),
      teacher_(std::move(teacher)),
      optimizer_(optim::make_optimizer(recipe.optimizer, optim::parameter_groups(model, group_options(recipe)))),
      schedule_(schedule_options(recipe, steps_per_epoch)),
      exchange_(crew, optimizer_->parameters()) {
  model_.checkpoint_blocks(recipe.model.activation_checkpointing);
  if (recipe.ema) ema_ = std::make_unique<optim::Ema>(model.named_parameters(), *recipe.ema);
}

void TrainingStep::at_epoch(double epoch) {
  const std::optional<TokenDropRecipe>& drop = recipe_.token_drop;
  const bool on = drop && epoch < drop->until * static_cast<double>(recipe_.epochs);
  model_.drop_patches_in_training(on ? drop->rate : model_.config().patch_drop_rate);
}

// Mixed targets are smoothed where they are made, labels here.  With a teacher, a distilled model's heads learn from
// one each (Touvron et al. 2021, section 4); without, what counts is their average, as in fine-tuning.
Tensor TrainingStep::loss_of(const models::VisionTransformer::Heads& heads, const data::Batch& batch) const {
  const bool apart = teacher_ && heads.distilled.defined();
  const Tensor logits = apart ? heads.classes : heads.average();
  const LossRecipe& recipe = recipe_.loss;
  const bool mixed = batch.targets.defined();
  const Tensor& targets = mixed ? batch.targets : batch.labels;
  const double smoothing = mixed ? 0 : recipe.label_smoothing;
  const Tensor loss =
      recipe.name == "bce"
          ? ops::bce_with_logits(
                logits, targets,
                {.label_smoothing = smoothing, .threshold = recipe.bce_threshold, .sum_classes = recipe.bce_sum})
          : ops::cross_entropy(logits, targets, smoothing);
  if (!teacher_) return loss;
  const DistillationRecipe& how = *recipe.distillation;
  const Tensor learned = ops::distillation(apart ? heads.distilled : logits, teacher_->logits(batch),
                                           {.hard = how.kind == "hard", .temperature = how.temperature});
  return ops::weighted_sum({loss, learned}, {1 - how.alpha, how.alpha});
}

BatchOutcome TrainingStep::over_all(const BatchOutcome& here) const {
  if (crew_.size() == 1) return here;
  const double loss = here.images > 0 ? here.loss * static_cast<double>(here.images) : 0;
  std::vector<double> sums{loss, static_cast<double>(here.correct), static_cast<double>(here.images)};
  crew_.sum(sums);
  BatchOutcome outcome{.correct = std::llround(sums[1]), .images = std::llround(sums[2])};
  if (outcome.images > 0) outcome.loss = sums[0] / sums[2];
  return outcome;
}

void TrainingStep::run_backward(const Tensor& loss, double share, bool last) {
  const autograd::BackwardOptions options = last ? exchange_.begin() : autograd::BackwardOptions{};
  try {
    autograd::backward(loss, Tensor::full(loss.shape(), share, loss.dtype()), options);
  } catch (...) {
    if (last) exchange_.complete();
    throw;
  }
}

BatchOutcome TrainingStep::add(const data::Batch& given, const BatchPlace& place) {
  BatchOutcome here{.images = given.images.size(0)};
  if (here.images == 0 && crew_.size() == 1) return here;
  const data::Batch batch = here.images > 0 ? given : stand_in(given);
  const nn::RandomScope random(recipe_.seed, place.number, batch.positions);
  const ops::MixedPrecision precision(recipe_.precision == "bf16" ? DType::bf16 : DType::f32);
  model_.train();
  const models::VisionTransformer::Heads heads = model_.forward_heads(batch.images);
  const Tensor loss = loss_of(heads, batch);
  std::string problem;
  if (here.images > 0) {
    here.loss = loss.item<double>();
    here.correct = count_correct(heads, batch.labels);
    if (!std::isfinite(here.loss))
      problem = str("the loss is ", here.loss, "; first not finite: ", first_non_finite_layer(model_, batch.images));
  }
  const BatchOutcome outcome = over_all(here);
  if (!std::isfinite(outcome.loss)) {
    problem = crew_.first_text(problem);
    if (problem_.empty()) problem_ = problem;
  } else if (outcome.images > 0) {
    const double share = static_cast<double>(here.images) / static_cast<double>(outcome.images);
    run_backward(loss, share / static_cast<double>(place.count), place.index + 1 == place.count);
  }
  return outcome;
}

StepOutcome TrainingStep::update(int64_t step, int64_t scheduled) {
  StepOutcome outcome{.learning_rate = schedule_.rate(scheduled)};
  exchange_.complete();
  outcome.gradient_norm = optim::gradient_norm(optimizer_->parameters());
  if (problem_.empty() && !std::isfinite(outcome.gradient_norm))
    problem_ = "first not finite: " + non_finite_gradient(optimizer_->parameters());
  if (!problem_.empty()) {
    const std::string problem = std::exchange(problem_, "");
    optimizer_->clear_gradients();
    outcome.updated = false;
    if (recipe_.non_finite == "skip") return outcome;
    throw Error(str("step ", step + 1), "a finite loss and finite gradients",
                problem + str(" (learning rate ", outcome.learning_rate,
                              "; a lower one, a warm-up or \"clip\" may help, \"non_finite\": \"skip\" goes on)"));
  }
  optimizer_->step(outcome.learning_rate, optim::clip_factor(outcome.gradient_norm, recipe_.clip));
  optimizer_->clear_gradients();
  if (ema_) ema_->update(step + 1);
  return outcome;
}

}  // namespace vitrail::train
