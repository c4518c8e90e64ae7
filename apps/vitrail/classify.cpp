// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/image_stream.h"
#include "apps/vitrail/output.h"
#include "apps/vitrail/prediction_printer.h"
#include "apps/vitrail/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> inputs;
  std::string labels, logits, format = "text";
  int64_t top = 5, batch = 8;
  bool exif = false;
};

int classify(const Options& options, const GlobalOptions& global) {
  const Format format = format_from_name(options.format);
  const Model model = load_model(options.model, global, options.labels);
  models::require_classifier(model.config(), options.model.model);
  const int64_t classes = model.config().vit.num_classes;
  const PredictionPrinter printer(format, models::gives_sigmoid(model.config()));
  const ImageSource source = image_source(options.inputs, model, options.exif);
  std::optional<NpyWriter> logits;
  if (!options.logits.empty()) {
    logits.emplace(options.logits, DType::f32, std::span(&classes, 1), -1);
  }
  const std::vector<float> nan_row(static_cast<size_t>(classes), std::numeric_limits<float>::quiet_NaN());

  size_t failures = 0;
  failures += run_images(source, model, {}, options.batch, global, [&](const Outcome& outcome) {
    if (!outcome.error.empty()) {
      printer.print_failure(outcome.path, outcome.error);
      if (logits) logits->write_rows(nan_row.data(), 1);
      return;
    }
    const float* row = outcome.result.data<float>();
    if (logits) logits->write_rows(row, 1);
    try {
      const std::span logits_row(row, static_cast<size_t>(classes));
      printer.print(outcome.path, model.predictions(logits_row, options.top, outcome.path));
    } catch (const Error& error) {
      ++failures;
      print_error(with_path(outcome.path, error.what()));
      printer.print_failure(outcome.path, error.what());
    }
  });
  if (logits) logits->finish();
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_classify(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("classify", "Classify images");
  command->footer(
      "Example: vitrail classify -m MODEL photo.jpg --top 3\n         find . -name '*.png' | vitrail classify -m MODEL "
      "- --format json");
  command->add_option("INPUT", options->inputs, "Images, folders, or - for paths on standard input")->required();
  options->model.add_to(*command);
  options->model.add_merging_to(*command);
  command->add_option("--top", options->top, "Number of classes to print")
      ->capture_default_str()
      ->check(kPositiveInteger);
  command->add_option("--labels", options->labels, "Text file with one class name per line, in index order");
  command->add_option("--logits", options->logits, "FILE.npy: logits, float32 [n, classes]");
  command->add_option("--batch", options->batch, "Batch size")->capture_default_str()->check(CLI::Range(1, 1024));
  command->add_option("--format", options->format, "Output format: text, json (one object per line) or csv")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "csv"}));
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([options, &global, &run] { run = [options, &global] { return classify(*options, global); }; });
}

}  // namespace vitrail::app
