// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <chrono>
#include <limits>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/image_stream.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/imagenet_labels.h"
#include "vitrail/data/metrics.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::string dataset, split, logits, labels;
  int64_t batch = 8;
  bool exif = false;
};

data::DatasetOptions dataset_options(const Options& options, const LoadedModel& model) {
  data::DatasetOptions result{.split = options.split, .labels = class_names(model.config, options.labels)};
  result.num_classes = model.config.vit.num_classes;
  result.decode.mode = model.mode;
  result.decode.apply_exif = options.exif;
  const auto ids = data::imagenet_wordnet_ids();
  if (result.num_classes == 1000) result.wordnet_ids.assign(ids.begin(), ids.end());
  return result;
}

int evaluate(const Options& options, const GlobalOptions& global) {
  const LoadedModel model = load_model(options.model, global);
  const int64_t classes = model.config.vit.num_classes;
  if (classes == 0) throw Error(options.model.model, "a model with a classifier", "a model without a head");
  if (models::gives_sigmoid(model.config)) {
    throw Error(options.model.model, "a model that chooses one of several classes, for top-1 and top-5 accuracy",
                classes == 1 ? "a head with one class (use classify)"
                             : "one that gives each label its own probability (use classify)");
  }
  const auto dataset = data::open_dataset(options.dataset, dataset_options(options, model));
  if (!global.quiet) print_note("vitrail: evaluating " + data::summary(*dataset, options.dataset));
  const ImageSource source{static_cast<size_t>(dataset->size()),
                           [&](size_t i) { return dataset->path(static_cast<int64_t>(i)); },
                           [&](size_t i) { return dataset->image(static_cast<int64_t>(i)); }};
  std::optional<NpyWriter> logits;
  if (!options.logits.empty()) logits.emplace(options.logits, DType::f32, std::span(&classes, 1), dataset->size());
  const std::vector<float> nan_row(static_cast<size_t>(classes), std::numeric_limits<float>::quiet_NaN());

  data::Accuracy accuracy;
  size_t failures = 0;
  const auto start = std::chrono::steady_clock::now();
  failures += run_images(source, model, {}, options.batch, global, [&](const Outcome& outcome) {
    if (logits) logits->write_rows(outcome.error.empty() ? outcome.result.data<float>() : nan_row.data(), 1);
    if (!outcome.error.empty()) return;
    try {
      accuracy.add({outcome.result.data<float>(), static_cast<size_t>(classes)},
                   dataset->label(static_cast<int64_t>(outcome.index)), outcome.path);
    } catch (const Error& error) {
      ++failures;
      print_error(with_path(outcome.path, error.what()));
    }
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (logits) logits->finish();
  print_json({{"images", accuracy.images()},
              {"top1", accuracy.top1()},
              {"top5", accuracy.top5()},
              {"images_per_second", static_cast<double>(accuracy.images()) / seconds}});
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_eval(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("eval", "Evaluate classification accuracy on a labelled dataset");
  command->footer("Example: vitrail eval -m MODEL imagenet/val");
  command
      ->add_option("DATASET", options->dataset,
                   "Folder or .zip of class folders, CSV file (file,class_index), or CIFAR or MNIST files")
      ->required();
  options->model.add_to(*command);
  options->model.add_merging_to(*command);
  command->add_option("--split", options->split,
                      "Dataset split (default: test, else val; \".\": none, the folders are classes)");
  command->add_option("--labels", options->labels, "Text file with one class name per line, in index order");
  command->add_option("--logits", options->logits, "FILE.npy: logits, float32 [n, classes]");
  command->add_option("--batch", options->batch, "Batch size")->capture_default_str()->check(CLI::Range(1, 1024));
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([options, &global, &run] { run = [options, &global] { return evaluate(*options, global); }; });
}

}  // namespace vitrail::app
