// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/weight_update_internal.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/autograd/engine.h"
#include "vitrail/base/error.h"
#include "vitrail/optim/gradients.h"
#include "vitrail/train/run/non_finite_internal.h"

namespace vitrail::train {
optim::ScheduleOptions schedule_options(const Recipe& recipe, int64_t steps_per_epoch) {
  const ScheduleRecipe& schedule = recipe.schedule;
  auto steps = [&](double epochs) { return std::llround(epochs * static_cast<double>(steps_per_epoch)); };
  optim::ScheduleOptions options;
  options.kind = schedule.name;
  options.rate = recipe.lr;
  options.final_rate = schedule.final_lr;
  options.total_steps = recipe.epochs * steps_per_epoch;
  options.warmup_steps = steps(schedule.warmup_epochs);
  options.warmup_rate = schedule.warmup_lr;
  options.warmup_prefix = schedule.warmup_prefix;
  options.decay_steps = steps(schedule.decay_epochs);
  options.decay_factor = schedule.decay_factor;
  return options;
}

WeightUpdate::WeightUpdate(const Recipe& recipe, nn::Module& model, const optim::GroupOptions& groups,
                           int64_t steps_per_epoch, const ProcessGroup& group)
    : recipe_(recipe),
      group_(group),
      optimizer_(optim::make_optimizer(recipe.optimizer, optim::parameter_groups(model, groups))),
      schedule_(schedule_options(recipe, steps_per_epoch)),
      all_reduce_(group, optimizer_->parameters()) {
  if (recipe.ema) ema_ = std::make_unique<optim::Ema>(model.named_parameters(), *recipe.ema);
}

// The share of the weight decay, which follows a cosine over the whole run if it has a final value.
double WeightUpdate::decay_scale(int64_t scheduled_step) const {
  const std::optional<double>& last = recipe_.schedule.final_weight_decay;
  if (!last) return 1;
  const auto steps = static_cast<double>(std::max<int64_t>(1, schedule_.options().total_steps));
  const double progress = std::min(1.0, static_cast<double>(scheduled_step) / steps);
  return optim::cosine_between(1, *last / recipe_.groups.weight_decay, progress);
}

void WeightUpdate::update_schedule(int64_t steps_per_epoch) {
  schedule_ = optim::Schedule(schedule_options(recipe_, steps_per_epoch));
}

// Combines the results of all processes.
BatchResult WeightUpdate::combine(const BatchResult& local) const {
  if (group_.size() == 1) return local;
  const double loss = local.images > 0 ? local.loss * local.weight : 0;
  std::vector<double> sums{loss, static_cast<double>(local.correct), static_cast<double>(local.images), local.weight};
  group_.all_reduce_sum(sums);
  BatchResult all{.correct = std::llround(sums[1]), .images = std::llround(sums[2]), .weight = sums[3]};
  if (all.images > 0) all.loss = sums[0] / sums[3];
  return all;
}

void WeightUpdate::run_backward(const Tensor& loss, double weight, bool last) {
  const autograd::BackwardOptions options = last ? all_reduce_.begin() : autograd::BackwardOptions{};
  try {
    autograd::backward(loss, Tensor::full(loss.shape(), weight, loss.dtype()), options);
  } catch (...) {
    if (last) all_reduce_.finish();
    throw;
  }
}

BatchResult WeightUpdate::accumulate(const Tensor& loss, BatchResult local, const BatchPosition& position) {
  if (local.images > 0) local.loss = loss.item<double>();
  if (!std::isfinite(local.loss) && local.problem.empty()) local.problem = str("the loss is ", local.loss);
  const BatchResult all = combine(local);
  if (!std::isfinite(all.loss)) {
    const std::string problem = group_.first_nonempty_text(local.problem);
    if (problem_.empty()) problem_ = problem;
  } else if (loss.defined() && all.images > 0) {
    const double share = local.weight / all.weight;
    run_backward(loss, share / static_cast<double>(position.count), position.index + 1 == position.count);
  }
  return all;
}

StepResult WeightUpdate::apply(int64_t step, int64_t scheduled_step) {
  StepResult result{.learning_rate = schedule_.rate(scheduled_step)};
  all_reduce_.finish();
  result.gradient_norm = optim::gradient_norm(optimizer_->parameters());
  if (problem_.empty() && !std::isfinite(result.gradient_norm))
    problem_ = "first not finite: " + non_finite_gradient(optimizer_->parameters());
  if (!problem_.empty()) {
    const std::string problem = std::exchange(problem_, "");
    optimizer_->clear_gradients();
    result.updated = false;
    if (recipe_.non_finite == "skip") return result;
    throw Error(
        str("step ", step + 1), "a finite loss and finite gradients",
        problem + str(" (learning rate ", result.learning_rate,
                      "; a lower one, a warm-up or \"clip\" may help; \"non_finite\": \"skip\" skips such steps)"));
  }
  const bool together = !recipe_.clip_per_tensor;
  if (!together) optim::clip_each_gradient(optimizer_->parameters(), recipe_.clip);
  optimizer_->step(result.learning_rate, together ? optim::clip_factor(result.gradient_norm, recipe_.clip) : 1,
                   decay_scale(scheduled_step));
  optimizer_->clear_gradients();
  if (ema_) ema_->update(step + 1);
  return result;
}

}  // namespace vitrail::train
