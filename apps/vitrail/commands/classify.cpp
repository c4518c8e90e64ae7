// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <limits>
#include <memory>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/prediction_printer.h"
#include "apps/vitrail/families/classifying_models.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"

namespace vitrail::app {
namespace {

struct ClassifyCommandOptions {
  ModelOptions model;
  StreamOptions images;
  PredictionOptions predictions;
  std::string labels, logits;
  bool force = false;
};

using OnOutcome = std::function<void(Outcome&)>;

// A Vision Transformer, or another model that classifies.
struct ImageClassifier {
  models::ModelConfig config;
  image::ColorMode color_mode;
  std::function<size_t(const ImageSource& source, const OnOutcome& on_outcome)> run;
  std::function<std::vector<Prediction>(std::span<const float> logits, const std::string& where)> predictions;
};

ImageClassifier vision_transformer(const ClassifyCommandOptions& options, const GlobalOptions& global) {
  const auto model = std::make_shared<const Model>(load_model(options.model, global, options.labels));
  return {model->config(), model->color_mode(),
          [=, &options, &global](const ImageSource& source, const OnOutcome& on_outcome) {
            return run_images(source, *model, {}, options.images.batch, global, on_outcome);
          },
          [=, top = options.predictions.top](std::span<const float> logits, const std::string& where) {
            return model->predictions(logits, top, where);
          }};
}

ImageClassifier other_classifier(const ClassifyCommandOptions& options, const GlobalOptions& global) {
  const auto model = open_classifying_model(options.model, global, options.labels);
  return {model->classes(), model->color_mode(),
          [=, &options, &global](const ImageSource& source, const OnOutcome& on_outcome) {
            return run_images(source, passes_of(*model, {}), options.images.batch, global, on_outcome);
          },
          [=, top = options.predictions.top](std::span<const float> logits, const std::string& where) {
            return model->predictions(logits, top, where);
          }};
}

int classify(const ClassifyCommandOptions& options, const GlobalOptions& global) {
  const Format format = format_from_name(options.predictions.format);
  const ImageClassifier model =
      is_vision_transformer(options.model) ? vision_transformer(options, global) : other_classifier(options, global);
  models::require_classifier(model.config, options.model.model);
  const int64_t classes = model.config.vit.num_classes;
  const PredictionPrinter printer(format, models::activation_of(model.config));
  const ImageSource source = image_source(options.images, model.color_mode);
  std::optional<NpyWriter> logits;
  if (!options.logits.empty()) {
    logits.emplace(options.logits, DType::f32, std::span(&classes, 1), -1);
  }
  const std::vector<float> nan_row(static_cast<size_t>(classes), std::numeric_limits<float>::quiet_NaN());

  size_t failures = 0;
  bool any_logits = false;
  failures += model.run(source, [&](const Outcome& outcome) {
    if (!outcome.error.empty()) {
      printer.print_failure(outcome, outcome.error);
      if (logits) logits->write_rows(nan_row.data(), 1);
      return;
    }
    const float* row = outcome.result().data<float>();
    if (logits) logits->write_rows(row, 1);
    any_logits = true;
    std::vector<Prediction> predictions;
    try {
      const std::span logits_row(row, static_cast<size_t>(classes));
      predictions = model.predictions(logits_row, outcome.path());
    } catch (const Error& error) {
      ++failures;
      print_error(outcome.message(error.what()));
      return printer.print_failure(outcome, error.what());
    }
    printer.print(outcome, predictions);
  });
  // Rows of NaN alone replace no old file.
  if (logits && failures > 0 && !any_logits && replaces_file(options.logits))
    throw Error("--logits", "an image that can be read", "none");
  if (logits) logits->finish();
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_classify(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<ClassifyCommandOptions>();
  CLI::App* command = program.add_subcommand("classify", "Classify images");
  command->footer(
      "Example: vitrail classify -m MODEL photo.jpg --top 3\n         find . -name '*.png' | vitrail classify -m MODEL "
      "- --format json");
  options->images.add_inputs_to(*command)->required();
  options->model.add_to(*command);
  options->model.add_merging_to(*command);
  options->predictions.add_to(*command);
  accept_dash(*command->add_option("--labels", options->labels,
                                   "Text file with one class name per line, in index order; - is standard input"));
  command->add_option("--logits", options->logits, "FILE.npy: logits, float32 [n, classes]");
  add_force_to(*command, options->force);
  options->images.add_to(*command);
  options->images.frames.add_to(*command);
  command->callback([options, command, &global, &run] {
    options->images.frames.check(*command, options->images.inputs);
    if (options->images.frames.given()) options->predictions.default_to_json(*command);
    std::vector<std::string> inputs = options->model.files();
    inputs.insert(inputs.end(), options->images.inputs.begin(), options->images.inputs.end());
    inputs.push_back(options->labels);
    check_outputs({{"--logits", options->logits, Kind::array}}, inputs, options->force);
    run = [options, &global] { return classify(*options, global); };
  });
}

}  // namespace vitrail::app
