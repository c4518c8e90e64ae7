// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/image_stream.h"
#include "apps/vitrail/prediction_printer.h"
#include "apps/vitrail/usage_errors.h"
#include "apps/vitrail/zero_shot_options.h"
#include "vitrail/base/error.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  ZeroShotOptions texts;
  StreamOptions images;
  PredictionOptions predictions;
  std::string labels;
};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// A file's lines, or names that are separated by commas.
std::vector<std::string> labels_of(const std::string& labels) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(labels, unknown)) return read_lines(labels);
  std::vector<std::string> names;
  for (size_t at = 0; at <= labels.size();) {
    const size_t comma = std::min(labels.find(',', at), labels.size());
    names.push_back(trimmed(labels.substr(at, comma - at)));
    if (names.back().empty())
      throw Error("--labels", "a file, or names with commas between them", "\"" + labels + "\"");
    at = comma + 1;
  }
  return names;
}

// The `top` best labels of a row of probabilities, best first.
std::vector<Prediction> best_of(const Tensor& probabilities, const std::vector<std::string>& labels, int64_t top) {
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < labels.size(); ++i) {
    predictions.push_back({static_cast<int64_t>(i), labels[i], probabilities.data<float>()[i]});
  }
  std::ranges::stable_sort(predictions, std::greater<>(), &Prediction::probability);
  predictions.resize(std::min(predictions.size(), static_cast<size_t>(top)));
  return predictions;
}

int zeroshot(const Options& options, const GlobalOptions& global) {
  const std::vector<std::string> labels = labels_of(options.labels), templates = options.texts.templates();
  const DualModel model = load_dual_model(options.model, global, options.texts.tokenizer);
  const Tensor texts = model.embed_labels(labels, templates);
  const PredictionPrinter printer(format_from_name(options.predictions.format), model.independent_scores());
  const ImageSource source = image_source(options.images, model.images());
  const infer::Request request = model.images().request_of({});
  const size_t failures =
      run_images(source, model.images(), request, options.images.batch, global, [&](const Outcome& outcome) {
        if (!outcome.error.empty()) return printer.print_failure(outcome.path, outcome.error);
        const Tensor logits = model.logits(outcome.result.unsqueeze(0), texts);
        printer.print(outcome.path, best_of(model.probabilities(logits), labels, options.predictions.top));
      });
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_zeroshot(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("zeroshot", "Classify images by texts (CLIP, SigLIP)");
  command->footer("Example: vitrail zeroshot -m MODEL photo.jpg --labels \"cat,dog,bicycle\"");
  options->images.add_inputs_to(*command)->required();
  command
      ->add_option("--labels", options->labels, "Names of the classes: \"cat,dog\", or a text file with one per line")
      ->required();
  options->model.add_to(*command);
  options->texts.add_to(*command);
  options->predictions.add_to(*command);
  options->images.add_to(*command);
  command->callback([options, &global, &run] { run = [options, &global] { return zeroshot(*options, global); }; });
}

}  // namespace vitrail::app
