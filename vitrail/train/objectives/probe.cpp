// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/probe.h"

#include "vitrail/analysis/strength_search.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/data/loader/shared_images.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/infer/session.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/train/objectives/class_weights_internal.h"
#include "vitrail/train/objectives/model_setup_internal.h"
#include "vitrail/train/objectives/multi_label_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/run_files_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// Cross-validation makes a validation set unnecessary.
DataRecipe without_default_holdout(DataRecipe recipe) {
  if (!recipe.holdout) recipe.holdout = 0;
  return recipe;
}

// Whether the recipe in the folder is that of a run, not of a probe.
bool has_other_objective(const fs::path& folder) {
  std::error_code unreadable;
  if (!fs::is_regular_file(folder / "recipe.json", unreadable)) return false;
  try {
    return recipe_objective(folder / "recipe.json") != "probe";
  } catch (const Error&) {
    return false;
  }
}

// What a probe must not replace; empty if it may be computed.
std::string obstacle_of_probe(const fs::path& folder, bool resume) {
  if (has_checkpoint(folder)) return "the checkpoints of a run";
  if (resume) return has_other_objective(folder) ? find_results(folder) : "";
  const std::string found = find_run_file(folder);
  return found == "summary.json" ? "a finished run" : found;
}

// The folder of a probe, which has no run, or with --resume a finished probe.
fs::path checked_folder(const TrainerOptions& options) {
  const std::string obstacle = obstacle_of_probe(options.folder, options.resume);
  if (obstacle.empty()) return options.folder;
  throw Error(options.folder.string(), "a folder without a run, or --resume to compute its probe again",
              "a folder with " + obstacle);
}

struct Features {
  Tensor rows;  // f32 [n, D]
  std::vector<int64_t> labels;
};

class Probe {
 public:
  Probe(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks);
  TrainingResult run();

 private:
  image::EvalTransform set_preprocessing();
  void log(const std::string& message) const { callbacks_.message ? callbacks_.message(message) : void(); }
  void log_data() const;
  void report_progress(Progress progress, Clock::time_point start, int64_t images) const;
  Features compute_features();
  void fit(const Features& features);
  void set_head(const analysis::LinearClassifier& classifier);
  void evaluate_sets();
  MetricsRow row_of(const char* event, double loss, double top1) const;
  void write_files();
  TrainingResult result() const;

  Clock::time_point start_ = Clock::now();
  const ProcessGroup group_;
  const Recipe& recipe_;
  const TrainerCallbacks& callbacks_;
  const int threads_;
  const ComputeTeam team_{threads_};
  const std::vector<std::pair<std::string, std::string>> environment_;  // for the report
  RunFolder folder_;
  RunData data_;
  PreparedModel prepared_;
  data::LoaderOptions loader_;
  analysis::StrengthSearch search_;
  analysis::Fit training_;  // on the training images
  int64_t iterations_ = 0;
  UnreadableImages unreadable_;
  Evaluation validation_, test_;  // without images if there are no such sets
  Counters counters_;
};

Probe::Probe(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks)
    : group_(single_process(options.communicator, "probe")),
      recipe_(recipe),
      callbacks_(callbacks),
      threads_(options.threads > 0 ? options.threads : available_threads()),
      environment_(environment_of(options, threads_)),
      folder_(checked_folder(options)),
      data_(open_data(without_default_holdout(recipe.data), architecture_of(recipe.model).in_chans)),
      prepared_(prepare_model(recipe.model, data_.classes, recipe.seed, data_.multi_label)),
      loader_(training_options(recipe, data_, set_preprocessing(), prepared_.config.vit.in_chans, threads_, group_)) {
  if (data_.multi_label) check_multi_label(recipe, 1);
  if (!data_.validation.dataset) data::warn_of_repeated_images({*data_.train.dataset, data_.train.samples, "training"});
}

image::EvalTransform Probe::set_preprocessing() {
  prepared_.config.preprocessing = preprocessing_of(recipe_.data, prepared_.config);
  return infer::transform_of(prepared_.config.preprocessing, "data");
}

void Probe::log_data() const {
  log(str(prepared_.config.architecture, ", ", prepared_.model.num_parameters(), " parameters, ", data_.classes.size(),
          " classes"));
  log("computing features of " + data_.train.name);
  log(class_counts_text(data_));
  if (data_.validation.dataset) log("validating on " + data_.validation.name);
  if (data_.test.dataset) log("testing at the end on " + data_.test.name);
}

void Probe::report_progress(Progress progress, Clock::time_point start, int64_t images) const {
  progress.epoch = progress.epochs = 1;
  fill(progress, start, images);
  if (callbacks_.progress) callbacks_.progress(progress);
  if (callbacks_.stop && callbacks_.stop()) throw StopRequested{};
}

// The output of the model without its head is the input of the head.
Features Probe::compute_features() {
  models::VisionTransformerConfig config = prepared_.config.vit;
  config.num_classes = 0;
  nn::CopiedParams params(prepared_.model);
  const infer::Session session(models::VisionTransformer(config, ParamSource(params)),
                               {.threads = threads_, .precision = kernels::precision_from_name(recipe_.precision)});
  data::Loader loader = evaluation_loader(data_.train, loader_);
  const Clock::time_point start = Clock::now();
  Features features;
  std::vector<float> values;
  std::vector<int64_t> read;
  loader.start(0);
  for (int64_t step = 1; auto batch = loader.next(); ++step) {
    counters_.skipped_images += static_cast<int64_t>(batch->skipped.size());
    unreadable_.add(data_.train, *batch);
    read.insert(read.end(), batch->samples.begin(), batch->samples.end());
    const int64_t count = batch->images.size(0);
    if (count > 0) {
      const Tensor rows = session.logits(batch->images).contiguous();
      values.insert(values.end(), rows.data<float>(), rows.data<float>() + rows.numel());
      features.labels.insert(features.labels.end(), batch->labels.data<int64_t>(),
                             batch->labels.data<int64_t>() + count);
    }
    report_progress({.phase = Progress::Phase::features, .step = step, .steps = loader.steps_per_epoch()}, start,
                    data_.train.size());
  }
  const auto count = static_cast<int64_t>(features.labels.size());
  if (count == 0) throw Error(recipe_.data.train, "readable images", "none");
  unreadable_.require_classes(data_, recipe_.data);
  if (counters_.skipped_images > 0) data_.train.samples = std::move(read);  // the report counts what was trained on
  features.rows = Tensor::from<float>({count, static_cast<int64_t>(values.size()) / count}, values);
  return features;
}

void Probe::fit(const Features& features) {
  const auto classes = static_cast<int64_t>(data_.classes.size());
  const analysis::StrengthSearchOptions options;
  const Clock::time_point start = Clock::now();
  search_ =
      analysis::search_strength(features.rows, features.labels, classes, options, [&](int64_t done, int64_t total) {
        report_progress({.phase = Progress::Phase::search, .step = done, .steps = total}, start, 0);
      });
  if (search_.folds == 0) warn("a class has a single image, so that the penalty is not chosen by cross-validation");
  analysis::LogisticRegressionOptions regression = options.regression;
  regression.c = search_.best;
  const analysis::LinearClassifier classifier =
      analysis::fit_logistic_regression(features.rows, features.labels, classes, regression);
  if (!classifier.converged)
    warn(str("the regression stopped after ", classifier.iterations, " iterations with a gradient of ",
             classifier.largest_gradient, ", above the tolerance ", regression.tolerance));
  training_ = analysis::fit_of(analysis::logits(classifier, features.rows), features.labels);
  iterations_ = classifier.iterations;
  set_head(classifier);
}

// A model with a distillation token averages the logits of two heads, and its features are the mean of their inputs:
// both heads get the regression.
void Probe::set_head(const analysis::LinearClassifier& classifier) {
  const autograd::NoGrad no_grad;
  for (const auto& [name, values] : {std::pair{"weight", classifier.weight}, {"bias", classifier.bias}}) {
    const Tensor rounded = values.to(DType::f32);
    prepared_.model.parameter(str("head.", name)).copy_(rounded);
    if (prepared_.config.vit.dist_token) prepared_.model.parameter(str("head_dist.", name)).copy_(rounded);
  }
}

void Probe::evaluate_sets() {
  const auto classes = static_cast<int64_t>(data_.classes.size());
  const auto evaluate_set = [&](const Subset& subset, Progress::Phase phase) {
    if (!subset.dataset) return Evaluation{};
    data::Loader loader = evaluation_loader(subset, loader_);
    const Clock::time_point start = Clock::now();
    Evaluation evaluation = evaluate(prepared_.model, loader, classes, [&](int64_t done, int64_t total) {
      report_progress({.phase = phase, .step = done, .steps = total}, start, subset.size());
    });
    unreadable_.add_left_out(subset, evaluation.skipped);
    return evaluation;
  };
  validation_ = evaluate_set(data_.validation, Progress::Phase::validate);
  test_ = evaluate_set(data_.test, Progress::Phase::test);
  counters_.best_epoch = 1;
  if (validation_.images > 0) {
    counters_.best = {validation_.top1, validation_.loss};
  } else if (search_.folds > 0) {
    counters_.best = {search_.held_out_fit().top1, search_.held_out_fit().loss};
  }
  counters_.tested = true;
  counters_.test_loss = test_.loss;
  counters_.test_top1 = test_.top1;
  counters_.test_images = test_.images;
  counters_.test_top5 = test_.top5;
}

MetricsRow Probe::row_of(const char* event, double loss, double top1) const {
  return {.event = event, .step = iterations_, .epoch = 1, .loss = loss, .top1 = top1, .seconds = counters_.seconds};
}

void Probe::write_files() {
  folder_.keep();
  folder_.remove_temporary_files();
  write_text(folder_.path() / "recipe.json", write_recipe(recipe_));
  write_model(folder_.path() / "model", prepared_.config, prepared_.model.named_parameters());
  MetricsLog log(folder_.path(), counters_);
  log.add(row_of("train", training_.loss, training_.top1));
  if (counters_.best.top1 >= 0) log.add(row_of("val", counters_.best.loss, counters_.best.top1));
  if (test_.images > 0) log.add(row_of("test", test_.loss, test_.top1));
  log.flush(counters_);
  const bool is_tested = test_.images > 0;
  const ReportImages images = report_images(data_.train, data::evaluation_options(loader_));
  write_report(folder_.path(), {.recipe = &recipe_,
                                .config = &prepared_.config,
                                .data = &data_,
                                .counters = &counters_,
                                .evaluation = is_tested ? &test_ : &validation_,
                                .subset = is_tested ? &data_.test : &data_.validation,
                                .parameters = prepared_.model.num_parameters(),
                                .finished = true,
                                .processes = 1,
                                .images = &images,
                                .environment = environment_,
                                .search = &search_});
}

TrainingResult Probe::result() const {
  TrainingResult result{.epoch = 1, .step = iterations_};
  if (validation_.images > 0) result.best_top1 = validation_.top1;
  result.validation_images = validation_.images;
  if (search_.folds > 0) result.cross_validated = {search_.held_out_fit().top1, search_.samples, search_.folds};
  result.tested = test_.images > 0;
  result.test_images = test_.images;
  result.test_loss = test_.loss;
  result.test_top1 = test_.top1;
  result.test_top5 = test_.top5;
  result.skipped_images = counters_.skipped_images;
  result.seconds = counters_.seconds;
  return result;
}

TrainingResult Probe::run() {
  log_data();
  const Features features = compute_features();
  fit(features);
  if (search_.folds > 0)
    log(str(search_.folds, "-fold cross-validation of ", search_.c.size(), " penalties: C ", search_.best, ", top-1 ",
            data::accuracy_text(search_.held_out_fit().top1, search_.samples)));
  evaluate_sets();
  counters_.seconds = seconds_since(start_);
  write_files();
  return result();
}

}  // namespace

TrainingResult train_probe(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  try {
    return Probe(recipe, options, callbacks).run();
  } catch (const StopRequested&) {
    return {.stopped = true};
  }
}

}  // namespace vitrail::train
