#include "vitrail/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/tensor/reused_memory.h"
#include "vitrail/train/checkpoint.h"
#include "vitrail/train/model_setup.h"
#include "vitrail/train/run_folder_internal.h"
#include "vitrail/train/stepper_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSkipsInARow = 100;  // "skip" is for a rare bad step; this many say that the run has diverged

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct StopRequested {};  // thrown out of an evaluation that nobody waits for any more

data::LoaderOptions loader_options(const Recipe& recipe, const RunData& data, const image::EvalTransform& transform,
                                   int64_t channels, int threads) {
  auto first_of_last = [&](double epochs) {
    return epochs > 0 ? std::max<int64_t>(0, recipe.epochs - std::llround(std::ceil(epochs))) : -1;
  };
  data::LoaderOptions options;
  options.batch_size = recipe.batch_size;
  options.channels = channels;
  options.seed = recipe.seed;
  options.threads = recipe.data.workers > 0 ? static_cast<int>(recipe.data.workers) : std::max(1, threads / 2);
  options.in_flight = recipe.data.in_flight;
  options.repeats = recipe.repeats;
  options.subset = data.train.samples;
  options.transform = transform;
  options.augment = recipe.augment;
  options.augment->off_epoch = first_of_last(recipe.plain_epochs);
  if (recipe.loss.distillation) options.augment->views = recipe.loss.distillation->views;
  options.mix = recipe.mix;
  options.mix.classes = static_cast<int64_t>(data.classes.size());
  options.mix.label_smoothing = recipe.loss.label_smoothing;
  options.mix.off_epoch = first_of_last(recipe.unmixed_epochs);
  options.unreadable = recipe.data.unreadable;
  return options;
}

data::Loader evaluation_loader(const Part& part, const data::LoaderOptions& training) {
  data::LoaderOptions options = data::evaluation_options(training);
  options.subset = part.samples;
  if (options.unreadable == data::Unreadable::replace) options.unreadable = data::Unreadable::leave_out;
  return {part.dataset, options};
}

void copy_weights(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& to,
                  const std::string& where) {
  if (from.size() != to.size()) throw Error(where, str(to.size(), " tensors"), str(from.size()));
  for (const nn::NamedTensor& target : to) {
    const auto found = std::find_if(from.begin(), from.end(), [&](const auto& t) { return t.name == target.name; });
    if (found == from.end() || !(found->tensor.shape() == target.tensor.shape()))
      throw Error(where, str(target.name, " ", target.tensor.shape()), "another shape or none");
    target.tensor.copy_(found->tensor);
  }
}

// The state of a run that may be resumed: read, and compared with what is about to go on.
std::optional<CheckpointState> resumable(const RunFolder& folder, const Recipe& recipe, const TrainerOptions& options,
                                         int threads) {
  if (!folder.holds_run()) return std::nullopt;
  if (!options.resume) {
    throw Error(folder.path().string(), "a folder without a run, or --resume to go on with the one that is there",
                "a folder with checkpoints");
  }
  CheckpointState state = load_latest(folder.checkpoint("last"));
  const std::vector<std::string> changes = recipe_differences(state.recipe, write_recipe(recipe));
  std::string list;
  for (const std::string& change : changes) list += "\n  " + change;
  if (!changes.empty() && !options.allow_changes) {
    throw Error(str(folder.path().string(), ": the run was begun with another recipe",
                    " (--allow-changes goes on all the same):", list));
  }
  if (!changes.empty()) warn("going on with another recipe:" + list);
  for (const std::string& line : differences(state.fingerprint, fingerprint(threads, 1)))
    warn("what follows will not be bit for bit what an unbroken run gives: " + line);
  return state;
}

class Run {
 public:
  Run(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks, int threads)
      : recipe_(recipe),
        callbacks_(callbacks),
        threads_(threads),
        folder_(options.folder),
        state_(resumable(folder_, recipe, options, threads)),
        data_(open_data(recipe.data, input_channels(recipe.model))),
        prepared_(prepare_model(recipe.model, data_.classes, recipe.seed)),
        transform_(transform()),
        loader_(data_.train.dataset, loader_options(recipe, data_, transform_, prepared_.config.vit.in_chans, threads)),
        batches_(loader_.steps_per_epoch()),
        steps_((batches_ + recipe.accumulate - 1) / recipe.accumulate),
        stepper_(recipe_, prepared_.model, steps_, teacher()) {
    restore();
    folder_.remove_leftovers();
    journal_.emplace(folder_.path(), counters_);
    write_text(folder_.path() / "recipe.json", write_recipe(recipe_));
    introduce();
  }

  TrainingResult run();

 private:
  image::EvalTransform transform() {
    prepared_.config.preprocessing = preprocessing_of(recipe_.data, prepared_.config);
    return infer::transform_of(prepared_.config.preprocessing, "data");
  }
  std::unique_ptr<Teacher> teacher() const {
    if (!recipe_.loss.distillation) return nullptr;
    auto teacher = std::make_unique<Teacher>(recipe_.loss.distillation->teacher, transform_, data_.classes);
    if (recipe_.loss.distillation->views > 0)
      teacher->remember(folder_.path() / "checkpoints" / "teacher.cache", recipe_);
    return teacher;
  }
  void say(const std::string& message) const {
    if (callbacks_.message) callbacks_.message(message);
  }
  bool stop_requested() const { return callbacks_.stop && callbacks_.stop(); }
  double seconds() const { return counters_.seconds + seconds_since(started_); }

  void introduce() const;
  void restore();
  bool train_epoch();
  void after_batch(const BatchOutcome& outcome, int64_t skipped);
  void after_step(const StepOutcome& outcome);
  void log_interval(const StepOutcome& outcome);
  void report_progress() const;
  bool save_is_due() const;
  void save();
  Evaluation evaluate_part(const Part& part, Progress::Phase phase);
  void finish_epoch();
  void keep_best(const EpochResult& result, bool average_is_better);
  void load_best();
  void final_evaluation();
  void write_report_of(const Evaluation& evaluation, const Part& part, bool finished) const;
  TrainingResult result(bool stopped) const;

  ReusedMemory memory_;  // each step asks for the blocks that the one before gave back
  Recipe recipe_;
  const TrainerCallbacks& callbacks_;
  int threads_;
  RunFolder folder_;
  std::optional<CheckpointState> state_;
  RunData data_;
  PreparedModel prepared_;
  image::EvalTransform transform_;
  data::Loader loader_;
  int64_t batches_, steps_;  // of an epoch: batches, optimiser steps
  Stepper stepper_;
  Position at_;
  Counters counters_;
  std::optional<Journal> journal_;

  Clock::time_point started_ = Clock::now(), saved_ = Clock::now(), interval_began_ = Clock::now();
  int64_t batches_here_ = 0, images_here_ = 0;  // of this process
  double interval_waited_ = 0, evaluated_ = 0;  // seconds: waited before the interval, spent in evaluations
  int64_t saved_step_ = 0;
};

void Run::introduce() const {
  say(str(prepared_.config.architecture, ", ", prepared_.model.num_parameters(), " parameters, ", data_.classes.size(),
          " classes"));
  for (const std::string& note : prepared_.notes) say("from " + recipe_.model.init + ": " + note);
  say("training on " + data_.train.name);
  say(data_.validation.dataset ? "the best weights are chosen on " + data_.validation.name
                               : "nothing is held out: the last weights are kept");
  if (data_.test.dataset) say("read once, at the end: " + data_.test.name);
  if (state_) say(str("resumed at epoch ", at_.epoch + 1, ", step ", at_.step));
}

void Run::restore() {
  if (!state_) return;
  const autograd::NoGrad no_grad;
  const std::string where = folder_.checkpoint("last").string();
  copy_weights(state_->model, prepared_.model.named_parameters(), where);
  stepper_.optimizer().load_state(state_->optimizer);
  if (stepper_.average() && !state_->average.empty()) stepper_.average()->load(state_->average);
  at_ = state_->position;
  saved_step_ = at_.step;
  counters_ = Counters::from_json(state_->counters);
  state_->model.clear();  // gives the file's pages back
  state_->optimizer.clear();
  state_->average.clear();
}

void Run::save() {
  const autograd::NoGrad no_grad;
  journal_->flush(counters_);
  Counters counters = counters_;
  counters.seconds = seconds();
  CheckpointState state{at_, write_recipe(recipe_), counters.to_json(), fingerprint(threads_, 1), {}, {}, {}};
  state.model = prepared_.model.named_parameters();
  state.optimizer = stepper_.optimizer().state();
  if (stepper_.average()) state.average = stepper_.average()->average();
  save_checkpoint(folder_.checkpoint("last"), state);
  saved_ = Clock::now();
  saved_step_ = at_.step;
}

bool Run::save_is_due() const {
  const CheckpointRecipe& when = recipe_.checkpoint;
  if (at_.step_in_epoch == batches_) return false;  // the epoch's end saves anyway
  if (when.every_steps > 0 && at_.step - saved_step_ >= when.every_steps) return true;
  return when.every_minutes > 0 && seconds_since(saved_) >= 60 * when.every_minutes;
}

// The rest of the epoch under way; false when it was told to stop.
bool Run::train_epoch() {
  loader_.start(at_.epoch, at_.step_in_epoch);
  while (auto batch = loader_.next()) {
    const int64_t first = at_.step_in_epoch / recipe_.accumulate * recipe_.accumulate;
    const int64_t parts = std::min(recipe_.accumulate, batches_ - first);
    stepper_.at_epoch(static_cast<double>(at_.epoch) +
                      static_cast<double>(at_.step_in_epoch) / static_cast<double>(batches_));
    after_batch(stepper_.add(*batch, static_cast<uint64_t>(at_.epoch * batches_ + at_.step_in_epoch), parts),
                static_cast<int64_t>(batch->skipped.size()));
    ++at_.step_in_epoch;
    if (at_.step_in_epoch - first == parts) {
      const StepOutcome outcome = stepper_.update(at_.step++);
      after_step(outcome);
      const bool stop = stop_requested();
      if (stop || save_is_due()) save();
      if (stop) return false;
    }
    report_progress();
  }
  return true;
}

void Run::after_batch(const BatchOutcome& outcome, int64_t skipped) {
  counters_.skipped_images += skipped;
  ++batches_here_;
  images_here_ += outcome.images;
  if (!std::isfinite(outcome.loss)) return;  // the step is left out, and so are its figures
  for (Sums* sums : {&counters_.epoch, &counters_.interval}) {
    sums->loss += outcome.loss * static_cast<double>(outcome.images);
    sums->correct += outcome.correct;
    sums->images += outcome.images;
  }
}

void Run::after_step(const StepOutcome& outcome) {
  if (outcome.updated) {
    counters_.skipped_in_a_row = 0;
    counters_.interval.gradient_norm += outcome.gradient_norm;
    ++counters_.interval.steps;
  } else {
    ++counters_.skipped_steps;
    if (++counters_.skipped_in_a_row >= kSkipsInARow)
      throw Error(str("step ", at_.step), "a finite loss now and then",
                  str(kSkipsInARow, " steps in a row without one"));
  }
  if (at_.step % recipe_.log_every == 0) log_interval(outcome);
}

void Run::log_interval(const StepOutcome& outcome) {
  const Sums& sums = counters_.interval;
  const double elapsed = std::max(1e-9, seconds_since(interval_began_));
  MetricsRow row{.event = "train", .step = at_.step};
  row.epoch = static_cast<double>(at_.epoch) + static_cast<double>(at_.step_in_epoch) / static_cast<double>(batches_);
  row.loss = sums.mean_loss();
  row.top1 = sums.accuracy();
  row.learning_rate = outcome.learning_rate;
  if (sums.steps > 0) row.gradient_norm = sums.gradient_norm / static_cast<double>(sums.steps);
  row.images_per_second = static_cast<double>(sums.images) / elapsed;
  row.data_wait = std::min(1.0, (loader_.waited_seconds() - interval_waited_) / elapsed);
  row.seconds = seconds();
  journal_->add(row);
  counters_.interval = {};
  interval_began_ = Clock::now();
  interval_waited_ = loader_.waited_seconds();
}

void Run::report_progress() const {
  if (!callbacks_.progress) return;
  const double elapsed = std::max(1e-9, seconds_since(started_)), training = std::max(1e-9, elapsed - evaluated_);
  Progress progress{.epoch = at_.epoch + 1, .epochs = recipe_.epochs, .step = at_.step_in_epoch, .steps = batches_};
  progress.loss = counters_.epoch.mean_loss();
  progress.accuracy = counters_.epoch.accuracy();
  progress.images_per_second = static_cast<double>(images_here_) / training;
  progress.data_wait = loader_.waited_seconds() / training;
  const int64_t left = (recipe_.epochs - at_.epoch) * batches_ - at_.step_in_epoch;
  progress.seconds_left = elapsed / static_cast<double>(batches_here_) * static_cast<double>(left);
  callbacks_.progress(progress);
}

Evaluation Run::evaluate_part(const Part& part, Progress::Phase phase) {
  const Clock::time_point began = Clock::now();
  data::Loader loader = evaluation_loader(part, loader_.options());
  const auto classes = static_cast<int64_t>(data_.classes.size());
  Evaluation evaluation = evaluate(prepared_.model, loader, classes, [&](int64_t done, int64_t total) {
    if (callbacks_.progress)
      callbacks_.progress(
          {.phase = phase, .epoch = at_.epoch + 1, .epochs = recipe_.epochs, .step = done, .steps = total});
    if (stop_requested()) throw StopRequested{};
  });
  evaluated_ += seconds_since(began);
  return evaluation;
}

// Figures of the weights and of their average, the best of them kept; then the next epoch begins.
void Run::finish_epoch() {
  EpochResult result{.epoch = at_.epoch + 1, .step = at_.step};
  result.train_loss = counters_.epoch.mean_loss();
  result.train_top1 = counters_.epoch.accuracy();
  const bool last = at_.epoch + 1 == recipe_.epochs;
  result.validated = data_.validation.dataset && (last || result.epoch % recipe_.validate_every == 0);
  Evaluation shown, of_average;
  if (result.validated) {
    shown = evaluate_part(data_.validation, Progress::Phase::validate);
    result.val_loss = shown.loss;
    result.val_top1 = shown.top1;
    result.val_top5 = shown.top5;
    if (stepper_.average()) {
      result.has_ema = true;
      stepper_.average()->swap();
      struct Undo {
        optim::Ema* average;
        ~Undo() { average->swap(); }
      } const undo{stepper_.average()};
      of_average = evaluate_part(data_.validation, Progress::Phase::validate);
      result.ema_loss = of_average.loss;
      result.ema_top1 = of_average.top1;
      result.ema_top5 = of_average.top5;
    }
  }
  const bool average_is_better = result.has_ema && result.ema_top1 > result.val_top1;
  const double top1 = average_is_better ? result.ema_top1 : result.val_top1;
  result.best = result.validated ? top1 > counters_.best_top1 : !data_.validation.dataset && last;
  result.seconds = seconds();
  auto row = [&](const char* event, double loss, double first, double fifth) {
    journal_->add({.event = event,
                   .step = at_.step,
                   .epoch = static_cast<double>(result.epoch),
                   .loss = loss,
                   .top1 = first,
                   .top5 = fifth,
                   .seconds = result.seconds});
  };
  if (result.validated) row("val", result.val_loss, result.val_top1, result.val_top5);
  if (result.has_ema) row("val_ema", result.ema_loss, result.ema_top1, result.ema_top5);
  if (result.best) keep_best(result, average_is_better);
  if (stepper_.average() && (result.validated || last))
    write_weights(folder_.checkpoint("ema"), stepper_.average()->average());
  counters_.history.push_back(result);
  counters_.epoch = {};
  at_ = {at_.epoch + 1, 0, at_.step};
  if (result.validated) write_report_of(average_is_better ? of_average : shown, data_.validation, false);
  save();
  if (callbacks_.epoch) callbacks_.epoch(result);
  interval_began_ = Clock::now();
  interval_waited_ = loader_.waited_seconds();
}

void Run::keep_best(const EpochResult& result, bool average_is_better) {
  const autograd::NoGrad no_grad;
  const bool average = average_is_better || (!result.validated && stepper_.average() != nullptr);
  const auto weights = average ? stepper_.average()->average() : prepared_.model.named_parameters();
  write_weights(folder_.checkpoint("best"), weights);
  write_model(folder_.path() / "model", prepared_.config, weights);
  counters_.best_top1 = average ? result.ema_top1 : result.val_top1;
  counters_.best_epoch = result.epoch;
  counters_.best_is_average = average;
}

void Run::load_best() {
  const autograd::NoGrad no_grad;
  const std::filesystem::path path = folder_.checkpoint("best");
  const weights::Checkpoint file = weights::Checkpoint::open(path);
  std::vector<nn::NamedTensor> best;
  for (const std::string& name : file.names()) best.push_back({name, file.tensor(name)});
  copy_weights(best, prepared_.model.named_parameters(), path.string());
}

// The best weights on the test images, once; the report shows them, or the held-out images without a test set.
void Run::final_evaluation() {
  if (counters_.tested) return;
  load_best();
  const bool test = data_.test.dataset != nullptr;
  const Part& part = test ? data_.test : data_.validation;
  Evaluation evaluation;
  if (part.dataset) evaluation = evaluate_part(part, test ? Progress::Phase::test : Progress::Phase::validate);
  counters_.tested = true;
  if (test) {
    counters_.test_loss = evaluation.loss;
    counters_.test_top1 = evaluation.top1;
    counters_.test_top5 = evaluation.top5;
    journal_->add({.event = "test",
                   .step = at_.step,
                   .epoch = static_cast<double>(at_.epoch),
                   .loss = evaluation.loss,
                   .top1 = evaluation.top1,
                   .top5 = evaluation.top5,
                   .seconds = seconds()});
  }
  write_report_of(evaluation, part, true);
}

void Run::write_report_of(const Evaluation& evaluation, const Part& part, bool finished) const {
  Counters counters = counters_;
  counters.seconds = seconds();
  write_report(folder_.path(), {&recipe_, &prepared_.config, &data_, &counters, &evaluation, &part,
                                prepared_.model.num_parameters(), finished});
}

TrainingResult Run::result(bool stopped) const {
  TrainingResult result{.stopped = stopped, .epoch = at_.epoch, .step = at_.step};
  result.best_top1 = std::max(0.0, counters_.best_top1);
  result.best_epoch = counters_.best_epoch;
  result.tested = counters_.tested && data_.test.dataset;
  result.test_loss = counters_.test_loss;
  result.test_top1 = counters_.test_top1;
  result.test_top5 = counters_.test_top5;
  result.skipped_images = counters_.skipped_images;
  result.skipped_steps = counters_.skipped_steps;
  result.seconds = seconds();
  return result;
}

TrainingResult Run::run() {
  try {
    while (at_.epoch < recipe_.epochs) {
      if (!train_epoch()) return result(true);
      finish_epoch();
    }
    if (counters_.tested) return result(false);
    const autograd::NoGrad no_grad;
    // The weights under training come back after the best ones have stood in their place.
    const std::vector<nn::NamedTensor> live = prepared_.model.named_parameters();
    std::vector<nn::NamedTensor> kept;
    for (const nn::NamedTensor& tensor : live) kept.push_back({tensor.name, tensor.tensor.clone()});
    final_evaluation();
    copy_weights(kept, live, "weights");
    save();
  } catch (const StopRequested&) {
    if (at_.epoch < recipe_.epochs) save();  // at the end of the epoch, before its validation
    return result(true);
  }
  return result(false);
}

}  // namespace

TrainingResult train(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  const int threads = options.threads > 0 ? options.threads : available_threads();
  const ComputeTeam team(threads);
  return Run(recipe, options, callbacks, threads).run();
}

}  // namespace vitrail::train
