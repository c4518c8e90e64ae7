// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/train/run/non_finite_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_files_internal.h"
#include "vitrail/train/run/weight_update_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {

void copy_weights(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& to,
                  const std::string& where) {
  if (from.size() != to.size()) throw Error(where, str(to.size(), " tensors"), str(from.size()));
  for (const nn::NamedTensor& target : to) {
    const auto found =
        std::find_if(from.begin(), from.end(), [&](const auto& source) { return source.name == target.name; });
    if (found == from.end() || !(found->tensor.shape() == target.tensor.shape()))
      throw Error(where, str(target.name, " ", target.tensor.shape()), "another shape or none");
    target.tensor.copy_(found->tensor);
  }
}

namespace {

// The means of squared gradients of AdamW and LAMB.
void check_second_moments(const std::vector<nn::NamedTensor>& optimizer, const std::string& where) {
  for (const nn::NamedTensor& state : optimizer) {
    if (state.name.find("exp_avg_sq") == std::string::npos) continue;
    const Tensor values = state.tensor.contiguous();
    const std::span squares(values.data<float>(), static_cast<size_t>(values.numel()));
    if (std::ranges::any_of(squares, [](float square) { return square < 0; }))
      throw Error(where, str(state.name, " of at least 0"), "negative values");
  }
}

}  // namespace

void check_progress(const Position& position, const Counters& counters, const std::string& where) {
  const int64_t epochs = position.current_epoch();
  if (counters.best_epoch > epochs)
    throw Error(where, str("best weights of an epoch up to ", epochs), str("epoch ", counters.best_epoch));
  if (std::ssize(counters.history) > epochs)
    throw Error(where, str("results of up to ", epochs, " epochs"), str(counters.history.size()));
}

void restore_tensors(CheckpointState& state, const std::vector<nn::NamedTensor>& parameters,
                     optim::Optimizer& optimizer, optim::Ema* ema, const std::string& where) {
  for (const auto* tensors : {&state.model, &state.optimizer, &state.average}) check_finite(*tensors, where);
  check_second_moments(state.optimizer, where);
  copy_weights(state.model, parameters, where);
  optimizer.load_state(state.optimizer);
  if (ema != nullptr && !state.average.empty()) ema->load(state.average);
  state.model.clear();  // unmaps the file
  state.optimizer.clear();
  state.average.clear();
}

void load_weights(const std::filesystem::path& path, const std::vector<nn::NamedTensor>& parameters) {
  const weights::Checkpoint file = weights::Checkpoint::open(path);
  std::vector<nn::NamedTensor> tensors;
  for (const std::string& name : file.names()) tensors.push_back({name, file.tensor(name)});
  copy_weights(tensors, parameters, path.string());
}

namespace {

std::optional<int64_t> epochs_of(const std::string& recipe) {
  try {
    return parse_recipe(recipe, "checkpoint").epochs;
  } catch (const Error&) {
    return std::nullopt;  // a field of another version
  }
}

}  // namespace

std::optional<CheckpointState> load_resumable_state(const RunFolder& folder, const Recipe& recipe,
                                                    const TrainerOptions& options, const Fingerprint& current) {
  require_startable(folder.path(), options.resume);
  if (!folder.holds_run()) return std::nullopt;
  CheckpointState state = load_latest(folder.checkpoint("last"));
  if (const auto epochs = epochs_of(state.recipe); epochs && state.position.epoch > *epochs) {
    throw Error(folder.checkpoint("last").string(), str("a position in the ", *epochs, " epochs of its recipe"),
                str("epoch ", state.position.epoch));
  }
  const std::vector<std::string> changes = recipe_differences(state.recipe, write_recipe(recipe));
  std::string list;
  for (const std::string& change : changes) list += "\n  " + change;
  if (!changes.empty() && !options.allow_changes) {
    throw Error(str(folder.path().string(), ": the run was started with another recipe",
                    " (--allow-changes resumes it anyway):", list));
  }
  if (!changes.empty()) warn("resuming with another recipe:" + list);
  for (const std::string& line : differences(state.fingerprint, current))
    warn("results will not be bit-identical to an uninterrupted run: " + line);
  return state;
}

std::optional<double> scheduled_rate(const std::string& recipe, int64_t steps_per_epoch, int64_t step) {
  try {
    return optim::Schedule(schedule_options(parse_recipe(recipe, "checkpoint"), steps_per_epoch)).rate(step);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_class_names(const std::vector<std::string>& before, const std::vector<std::string>& now,
                       const std::string& where) {
  if (before.empty() || before == now) return;
  size_t first = 0;
  while (first < std::min(before.size(), now.size()) && before[first] == now[first]) ++first;
  const auto name = [&](const auto& names) { return first < names.size() ? "'" + names[first] + "'" : "no class"; };
  throw Error(where, str("the run's ", before.size(), " classes, with ", name(before), " as class ", first),
              str(now.size(), " classes, with ", name(now), "; restore the class folders or start a new run"));
}

void check_finite(const std::vector<nn::NamedTensor>& tensors, const std::string& where) {
  for (const nn::NamedTensor& tensor : tensors) {
    if (const std::string problem = non_finite_values(tensor.name, tensor.tensor); !problem.empty())
      throw Error(where, "finite values", problem);
  }
}

Position resume_position(Position position, int64_t batch_images, int64_t batches, int64_t accumulate) {
  const int64_t old_batch_images = position.batch_images > 0 ? position.batch_images : batch_images;
  position.batch_images = batch_images;
  if (old_batch_images == batch_images) return position;
  const int64_t done = std::min(batches, position.step_in_epoch * old_batch_images / batch_images);
  position.step_in_epoch = done == batches ? done : done / accumulate * accumulate;
  return position;
}

}  // namespace vitrail::train
