// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/weight_update_internal.h"

#include <cmath>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/optim/gradients.h"
#include "vitrail/train/run/non_finite_internal.h"

namespace vitrail::train {
namespace {

optim::GroupOptions group_options(const Recipe& recipe, const std::vector<std::string>& frozen) {
  optim::GroupOptions groups = recipe.groups;
  groups.frozen = frozen;
  return groups;
}

}  // namespace

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

WeightUpdate::WeightUpdate(const Recipe& recipe, nn::Module& model, const std::vector<std::string>& frozen,
                           int64_t steps_per_epoch, const ProcessGroup& group)
    : recipe_(recipe),
      optimizer_(
          optim::make_optimizer(recipe.optimizer, optim::parameter_groups(model, group_options(recipe, frozen)))),
      schedule_(schedule_options(recipe, steps_per_epoch)),
      all_reduce_(group, optimizer_->parameters()) {
  if (recipe.ema) ema_ = std::make_unique<optim::Ema>(model.named_parameters(), *recipe.ema);
}

void WeightUpdate::update_schedule(int64_t steps_per_epoch) {
  schedule_ = optim::Schedule(schedule_options(recipe_, steps_per_epoch));
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
  optimizer_->step(result.learning_rate, optim::clip_factor(result.gradient_norm, recipe_.clip));
  optimizer_->clear_gradients();
  if (ema_) ema_->update(step + 1);
  return result;
}

}  // namespace vitrail::train
