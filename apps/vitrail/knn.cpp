// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/knn.h"

#include <cstring>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/image_stream.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/error.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/metrics.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::string train, test, train_split, test_split;
  analysis::KnnOptions knn;
  int64_t batch = 32;
};

struct Features {
  Tensor rows;  // [n, D], normalised
  std::vector<int64_t> labels;
  size_t failures = 0;
};

// A dataset's split, or all of it where it has none.
std::unique_ptr<data::Dataset> open_split(const std::string& path, const std::string& asked, const std::string& usual,
                                          data::DatasetOptions options) {
  options.split = asked.empty() ? usual : asked;
  try {
    return data::open_dataset(path, options);
  } catch (const Error&) {
    if (!asked.empty()) throw;
  }
  options.split.clear();
  return data::open_dataset(path, options);
}

Features features_of(const data::Dataset& dataset, const ReadyModel& model, const Options& options,
                     const GlobalOptions& global) {
  const ImageSource source{static_cast<size_t>(dataset.size()),
                           [&](size_t i) { return dataset.path(static_cast<int64_t>(i)); },
                           [&](size_t i) { return dataset.image(static_cast<int64_t>(i)); }};
  Features result;
  std::vector<float> values;
  const infer::Request request{.output = infer::Output::features, .tokens = infer::Tokens::pooled};
  result.failures = run_images(source, model, request, options.batch, global, [&](const Outcome& outcome) {
    if (!outcome.error.empty()) return;
    const Tensor row = outcome.result.contiguous();
    values.insert(values.end(), row.data<float>(), row.data<float>() + row.numel());
    result.labels.push_back(dataset.label(static_cast<int64_t>(outcome.index)));
  });
  const auto count = static_cast<int64_t>(result.labels.size());
  if (count == 0) throw Error("k-NN", "images that can be read", "none");
  result.rows =
      analysis::normalized_rows(Tensor::from<float>({count, static_cast<int64_t>(values.size()) / count}, values));
  return result;
}

int knn(const Options& options, const GlobalOptions& global) {
  const ReadyModel model = ready_model(options.model, global);
  data::DatasetOptions how;
  how.decode.mode = model.mode;
  const auto train = open_split(options.train, options.train_split, "train", how);
  how.labels = train->class_names();
  how.num_classes = static_cast<int64_t>(how.labels.size());
  const auto test = open_split(options.test, options.test_split, "test", how);

  const Features known = features_of(*train, model, options, global);
  const Features asked = features_of(*test, model, options, global);
  int64_t classes = how.num_classes;
  for (const Features* features : {&known, &asked}) {
    for (const int64_t label : features->labels) classes = std::max(classes, label + 1);
  }
  const Tensor votes = analysis::knn_votes(known.rows, known.labels, asked.rows, classes, options.knn);
  data::Accuracy accuracy;
  for (int64_t i = 0; i < votes.size(0); ++i) {
    accuracy.add({votes.data<float>() + i * classes, static_cast<size_t>(classes)},
                 asked.labels[static_cast<size_t>(i)], "k-NN");
  }
  print_json({{"images", accuracy.images()},
              {"training_images", known.rows.size(0)},
              {"k", options.knn.k},
              {"top1", accuracy.top1()},
              {"top5", accuracy.top5()}});
  return known.failures + asked.failures == 0 ? 0 : 1;
}

}  // namespace

void add_knn(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("knn", "Classify by the nearest training images in feature space");
  command->footer("Example: vitrail knn -m MODEL cifar10.zip cifar10.zip --k 20");
  command->add_option("TRAIN", options->train, "Labelled images: a dataset as eval takes it, or its train split")
      ->required();
  command->add_option("TEST", options->test, "Those to classify: a dataset, or its test split")->required();
  options->model.add_to(*command);
  command->add_option("--k", options->knn.k, "Neighbours")->capture_default_str()->check(CLI::PositiveNumber);
  command->add_option("--temperature", options->knn.temperature, "Each votes with exp(cosine / temperature)")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--plain", options->knn.plain, "Each neighbour's vote counts the same");
  command->add_option("--train-split", options->train_split, "Split of TRAIN (default: train, else all)");
  command->add_option("--test-split", options->test_split, "Split of TEST (default: test, else val, else all)");
  command->add_option("--batch", options->batch, "Images run together")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->callback([options, &global, &run] { run = [options, &global] { return knn(*options, global); }; });
}

}  // namespace vitrail::app
