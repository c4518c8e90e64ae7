// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/eval/detection_evaluation.h"
#include "apps/vitrail/eval/eval_labels.h"
#include "apps/vitrail/eval/eval_output.h"
#include "apps/vitrail/families/family.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/datasets/imagenet_labels.h"
#include "vitrail/train/run/training_images.h"

namespace vitrail::app {
namespace {

data::DatasetOptions dataset_options(const EvalCommandOptions& options, const Model& model) {
  data::DatasetOptions result{.split = options.split};
  result.decode.mode = model.color_mode();
  result.decode.apply_exif = options.images.exif;
  return result;
}

// Classes are the model's.
data::DatasetOptions classifier_options(const EvalCommandOptions& options, const Model& model) {
  data::DatasetOptions result = dataset_options(options, model);
  result.labels = model.class_names();
  result.num_classes = model.config().vit.num_classes;
  const auto ids = data::imagenet_wordnet_ids();
  if (result.num_classes == 1000) result.wordnet_ids.assign(ids.begin(), ids.end());
  return result;
}

// Collects the results of the images.
class Evaluation {
 public:
  Evaluation(const EvalCommandOptions& options, const std::string& command_line, const data::Dataset& dataset,
             int64_t classes, const std::vector<std::string>& names)
      : options_(options),
        command_line_(command_line),
        dataset_(dataset),
        report_(classes),
        output_{.report = &report_, .names = &names},
        nan_row_(static_cast<size_t>(classes), std::numeric_limits<float>::quiet_NaN()) {
    if (!options.logits.empty()) logits_.emplace(options.logits, DType::f32, std::span(&classes, 1), dataset.size());
    if (!options.predictions.empty()) predictions_.emplace(options.predictions, names);
    if (!options.report.empty()) const AtomicFile writable(options.report);  // throws before the images are read
  }

  void add(const Outcome& outcome) {
    if (!outcome.error.empty()) return fail(outcome, outcome.error);
    any_logits_ = true;
    const std::span<const float> row(outcome.result().data<float>(), nan_row_.size());
    const int64_t label = dataset_.label(static_cast<int64_t>(outcome.index));
    try {
      const data::Prediction prediction = report_.add(row, label, outcome.path());
      if (prediction.index != label) add_wrong(outcome, label, prediction, row);
    } catch (const Error& error) {
      print_error(with_path(outcome.path(), error.what()));
      return fail(outcome, error.what(), row.data());
    }
    if (logits_) logits_->write_rows(row.data(), 1);
    if (predictions_) predictions_->add(outcome.path(), label, row);
  }

  // Writes the files and prints the results.  Without any image that could be read there are none, and old files stay.
  void finish(double seconds) {
    if (logits_ && any_logits_) logits_->finish();
    if (predictions_ && any_logits_) predictions_->finish();
    if (report_.images() == 0) throw Error(options_.dataset, "images that can be read", "none");
    output_.images_per_second = static_cast<double>(report_.images()) / seconds;
    std::stable_sort(output_.wrong.begin(), output_.wrong.end(), [](const WrongImage& a, const WrongImage& b) {
      return a.prediction.prediction_probability < b.prediction.prediction_probability;
    });
    if (!options_.report.empty()) write_report();
    if (options_.format == "json") {
      print_evaluation_json(output_);
    } else {
      print_evaluation_table(output_);
    }
  }

  int64_t failures() const { return failures_; }

 private:
  void add_wrong(const Outcome& outcome, int64_t label, const data::Prediction& prediction,
                 std::span<const float> row) {
    const std::vector<float> probabilities = data::softmax(row, outcome.path());
    output_.wrong.push_back({outcome.path(),
                             {.sample = static_cast<int64_t>(outcome.index),
                              .label = label,
                              .prediction = prediction.index,
                              .prediction_probability = prediction.probability,
                              .label_probability = probabilities[static_cast<size_t>(label)]}});
  }

  void write_report() const {
    train::EvaluationReport report{
        .title = "Evaluation",
        .subtitle = data::summary(dataset_, options_.dataset),
        .metrics = &report_,
        .dataset = &dataset_,
        .class_names = *output_.names,
        .environment = {{"command", command_line_}, {"version", "vitrail " VITRAIL_VERSION}}};
    for (const WrongImage& image : output_.wrong) report.wrong.push_back(image.prediction);
    train::write_evaluation_report(options_.report, report);
  }

  void fail(const Outcome& outcome, const std::string& error, const float* row = nullptr) {
    ++failures_;
    if (logits_) logits_->write_rows(row != nullptr ? row : nan_row_.data(), 1);
    if (predictions_)
      predictions_->add_failure(outcome.path(), dataset_.label(static_cast<int64_t>(outcome.index)), error);
  }

  const EvalCommandOptions& options_;
  const std::string& command_line_;
  const data::Dataset& dataset_;
  data::ClassificationReport report_;
  EvaluationOutput output_;
  const std::vector<float> nan_row_;
  bool any_logits_ = false;
  std::optional<NpyWriter> logits_;
  std::optional<PredictionsFile> predictions_;
  int64_t failures_ = 0;
};

// What turns an image into logits of classes: a classifier, or a dual model with the names of the classes.
struct Classifier {
  const Model& model;
  int64_t classes;
  const std::vector<std::string>& names;
  infer::Request request{};
  std::function<Tensor(const Tensor&)> logits_of = [](const Tensor& result) { return result; };
};

template <class Results>
int collect(Results& results, const data::Dataset& dataset, const Classifier& classifier,
            const EvalCommandOptions& options, const GlobalOptions& global) {
  if (!global.quiet) print_note("vitrail: evaluating " + data::summary(dataset, options.dataset));
  const ImageSource source{static_cast<size_t>(dataset.size()),
                           [&](size_t i) { return dataset.path(static_cast<int64_t>(i)); },
                           [&](size_t i) { return dataset.image(static_cast<int64_t>(i)); }};
  const auto start = std::chrono::steady_clock::now();
  run_images(source, classifier.model, classifier.request, options.images.batch, global, [&](Outcome outcome) {
    if (outcome.error.empty()) outcome.item.results[0][0] = classifier.logits_of(outcome.result());
    results.add(outcome);
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  results.finish(seconds);
  return results.failures() == 0 ? 0 : 1;
}

int evaluate_on(const data::Dataset& dataset, const Classifier& classifier, const EvalCommandOptions& options,
                const GlobalOptions& global) {
  Evaluation evaluation(options, global.command_line, dataset, classifier.classes, classifier.names);
  return collect(evaluation, dataset, classifier, options, global);
}

int evaluate_labels(const data::Dataset& dataset, const Classifier& classifier, const EvalCommandOptions& options,
                    const GlobalOptions& global) {
  const LabelEvaluationOptions files{.dataset = options.dataset,
                                     .logits = options.logits,
                                     .predictions = options.predictions,
                                     .report = options.report,
                                     .format = options.format,
                                     .command_line = global.command_line};
  LabelEvaluation evaluation(files, dataset, classifier.classes, classifier.names);
  return collect(evaluation, dataset, classifier, options, global);
}

// Classes are the labels, by default those that the dataset names.
int evaluate_zero_shot(const models::ModelFiles& files, const EvalCommandOptions& options,
                       const GlobalOptions& global) {
  const DualModel model = load_dual_model(files, options.model, global, options.texts.tokenizer);
  data::DatasetOptions settings = dataset_options(options, model.images());
  settings.multi_label = false;
  if (!options.labels.empty()) settings.labels = labels_of(options.labels);
  const auto dataset = LabelledSets(options.sets).open(options.dataset, settings);
  const std::vector<std::string>& names = settings.labels.empty() ? dataset->class_names() : settings.labels;
  if (names.empty()) {
    throw Error(options.dataset, "names of the classes, for zero-shot classification", "none (pass --labels FILE)");
  }
  const Tensor texts = model.embed_labels(names, options.texts.templates());
  const auto logits_of = [&](const Tensor& row) { return model.logits(row.unsqueeze(0), texts).select(0, 0); };
  return evaluate_on(*dataset,
                     {.model = model.images(),
                      .classes = static_cast<int64_t>(names.size()),
                      .names = names,
                      .request = model.images().request_of({}),
                      .logits_of = logits_of},
                     options, global);
}

}  // namespace

void refuse_classifier_options(const EvalCommandOptions& options, const std::string& what_it_does) {
  const char* given = options.zeroshot                ? "--zeroshot"
                      : !options.labels.empty()       ? "--labels"
                      : !options.sets.columns.empty() ? "--columns"
                      : !options.logits.empty()       ? "--logits"
                      : !options.predictions.empty()  ? "--predictions"
                      : !options.report.empty()       ? "--report"
                                                      : nullptr;
  if (given != nullptr) throw CLI::ValidationError(given, "belongs to a classifier; the model " + what_it_does);
}

void refuse_split(const EvalCommandOptions& options, const std::string& what_it_does) {
  if (!options.split.empty())
    throw CLI::ValidationError("--split", "belongs to a classifier; the model " + what_it_does);
}

void refuse_label_map_options(const EvalCommandOptions& options, const char* why) {
  const data::LabelMapReading none;
  const char* given = options.label_maps.reduce_labels             ? "--reduce-labels"
                      : options.label_maps.ignored != none.ignored ? "--ignored-label"
                                                                   : nullptr;
  if (given != nullptr) throw CLI::ValidationError(given, why);
}

int evaluate_image_model(const NamedModel& named, const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_label_map_options(options);
  if (options.zeroshot) return evaluate_zero_shot(*named.files, options, global);
  const Model model = load_model(*named.files, options.model, global, options.labels);
  models::require_classifier(model.config(), options.model.model);
  models::refuse_regression(model.config(), options.model.model);
  const int64_t classes = model.config().vit.num_classes;
  if (classes == 1)
    throw Error(options.model.model, "a model that chooses among classes", "a head with one class (use classify)");
  data::DatasetOptions settings = classifier_options(options, model);
  settings.multi_label = models::gives_sigmoid(model.config());
  LabelledSets sets = options.sets;
  const auto dataset = sets.open(options.dataset, settings);
  train::warn_of_training_images(options.model.model, *dataset, sets.manifests);
  const Classifier classifier{.model = model, .classes = classes, .names = model.class_names()};
  return *settings.multi_label ? evaluate_labels(*dataset, classifier, options, global)
                               : evaluate_on(*dataset, classifier, options, global);
}

void add_eval(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<EvalCommandOptions>();
  CLI::App* command = program.add_subcommand(
      "eval",
      "Evaluate a classifier on labelled images, or another model on objects, masks, label maps, defects or depth");
  command->footer("Example: vitrail eval -m MODEL imagenet/val");
  command
      ->add_option(
          "DATASET", options->dataset,
          "Folder or .zip of class folders, CSV file (file,class_index), or CIFAR or MNIST files; for Segment "
          "Anything a COCO file (.json) or a folder of images and masks; for a semantic segmenter a folder with "
          "images and labels; for a bank a set with defects; for a depth estimator a folder with images and depth; for "
          "an object detector boxes in COCO's, YOLO's or Pascal VOC's form, or a CSV file; for a pose estimator key "
          "points in COCO's or YOLO's form")
      ->required();
  options->model.add_to(*command);
  options->model.add_merging_to(*command);
  command->add_option("--split", options->split,
                      "Dataset split (default: test, else val; \".\": none, the folders are classes)");
  add_columns(*command, options->sets.columns);
  CLI::Option* zeroshot = command->add_flag("--zeroshot", options->zeroshot,
                                            "Classify by the names of the classes as texts (CLIP, SigLIP)");
  for (CLI::Option* text : options->texts.add_to(*command)) text->needs(zeroshot);
  accept_dash(*command->add_option("--labels", options->labels,
                                   "Text file with one class name per line, in index order; - is standard input"));
  command->add_option("--logits", options->logits, "FILE.npy: logits, float32 [n, classes]");
  command->add_option("--predictions", options->predictions, "FILE.csv: label, prediction and probabilities by image");
  command->add_option("--report", options->report, "FILE.html: a page with metrics, confusion and the worst mistakes");
  command
      ->add_option("--detections", options->detections,
                   "FILE.json: objects found, in COCO's results format, instead of those of a model")
      ->excludes(command->get_option("--model"));
  CLI::Option* const detector =
      command
          ->add_option("--detector", options->detector,
                       "Pose estimator: object detector that finds the persons (default: their boxes in the set)")
          ->excludes(command->get_option("--detections"));
  command
      ->add_option("--classes", options->classes,
                   "With --detector: names or indices of its classes whose objects are persons (default: person)")
      ->needs(detector);
  add_force_to(*command, options->force);
  add_field_options(*command, [options](Fields& f) {
    f.boolean({"reduce_labels", "Label maps: 0 stands for no class, and class i for i - 1, as in ADE20K's files"},
              options->label_maps.reduce_labels);
    f.integer({"ignored_label", "Label maps: the value of pixels without a class"}, options->label_maps.ignored, 0,
              65535);
  });
  add_field_options(
      *command,
      [options](Fields& f) {
        f.choice({"format", "Output format: table or json (default: table)"}, options->format, {"table", "json"});
      },
      {}, hide_default);
  options->images.add_to(*command);
  command->callback([options, &global, &run] {
    std::vector<std::string> inputs = options->model.files();
    inputs.insert(inputs.end(), {options->dataset, options->labels, options->detections});
    check_outputs({{"--logits", options->logits, Kind::array},
                   {"--predictions", options->predictions, Kind::predictions},
                   {"--report", options->report, Kind::page}},
                  inputs, options->force);
    run = [options, &global] {
      if (!options->detections.empty()) return evaluate_results(*options, global);
      const NamedModel model{options->model.path(), models::ModelFiles(options->model.path())};
      if (!options->detector.empty() && tasks::family_of(*model.files).name != "pose")
        throw CLI::ValidationError("--detector", "belongs to a pose estimator");
      return family_of(model).evaluate(model, *options, global);
    };
  });
}

}  // namespace vitrail::app
