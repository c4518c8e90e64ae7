// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/prediction_printer.h"
#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::app {
namespace {

struct ZeroShotCommandOptions {
  ModelOptions model;
  ZeroShotOptions texts;
  StreamOptions images;
  PredictionOptions predictions;
  std::string labels;
};

int zeroshot(const ZeroShotCommandOptions& options, const GlobalOptions& global) {
  const std::vector<std::string> labels = labels_of(options.labels), templates = options.texts.templates();
  const DualModel model = load_dual_model(options.model.path(), options.model, global, options.texts.tokenizer);
  const Tensor texts = model.embed_labels(labels, templates);
  if (labels.size() == 1 && !model.independent_scores())
    warn("--labels: one label: its probability among all labels is always 100 %");
  const PredictionPrinter printer(format_from_name(options.predictions.format),
                                  model.independent_scores() ? "sigmoid" : "softmax");
  const ImageSource source = image_source(options.images, model.images().color_mode());
  const infer::Request request = model.images().request_of({});
  const size_t failures =
      run_images(source, model.images(), request, options.images.batch, global, [&](const Outcome& outcome) {
        if (!outcome.error.empty()) return printer.print_failure(outcome, outcome.error);
        const Tensor logits = model.logits(outcome.result().unsqueeze(0), texts);
        printer.print(outcome, pipeline::best_labels(model.probabilities(logits), labels, options.predictions.top));
      });
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_zeroshot(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<ZeroShotCommandOptions>();
  CLI::App* command = program.add_subcommand("zeroshot", "Classify images by texts (CLIP, SigLIP)");
  command->footer("Example: vitrail zeroshot -m MODEL photo.jpg --labels \"cat,dog,bicycle\"");
  options->images.add_inputs_to(*command)->required();
  CLI::Option* labels =
      command
          ->add_option("--labels", options->labels,
                       "Names of the classes: \"cat,dog\", or a file with one per line or in JSON; - is standard input")
          ->required();
  accept_dash(*labels);
  options->model.add_to(*command);
  options->texts.add_to(*command);
  options->predictions.add_to(*command);
  options->images.add_to(*command);
  options->images.frames.add_to(*command);
  command->callback([options, command, &global, &run] {
    options->images.frames.check(*command, options->images.inputs);
    if (options->images.frames.given()) options->predictions.default_to_json(*command);
    if (options->labels == "/dev/stdin" &&
        std::ranges::find(options->images.inputs, "-") != options->images.inputs.end())
      throw CLI::ValidationError("--labels", "standard input has the images");
    run = [options, &global] { return zeroshot(*options, global); };
  });
}

}  // namespace vitrail::app
