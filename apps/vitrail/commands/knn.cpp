// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/knn.h"

#include <algorithm>
#include <limits>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/labelled_sets.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/data/augment/interval_json_internal.h"
#include "vitrail/data/loader/shared_images.h"

namespace vitrail::app {
namespace {

struct KnnCommandOptions {
  ModelOptions model;
  std::string train, test, train_split, test_split;
  analysis::KnnOptions knn;
  StreamOptions images{.batch = 32};
  LabelledSets sets;
};

struct LabelledFeatures {
  Tensor rows;  // [n, D], normalised
  std::vector<int64_t> labels;
  size_t failures = 0;
};

// Opens the requested split, or else the first of the default ones.  A dataset without splits is used in full.
std::unique_ptr<data::Dataset> open_split(LabelledSets& sets, const std::string& path, const std::string& requested,
                                          std::vector<std::string> default_splits, data::DatasetOptions options) {
  options.split = requested;
  options.default_splits = std::move(default_splits);
  return sets.open(path, options);
}

// The classes of TRAIN by index.  A list of class indices names none; its indices are then the names of folders.
std::vector<std::string> classes_of(const data::Dataset& train) {
  std::vector<std::string> names = train.class_names();
  for (int64_t i = 0; train.class_names().empty() && i < train.size(); ++i) {
    while (static_cast<int64_t>(names.size()) <= train.label(i)) names.push_back(std::to_string(names.size()));
  }
  return names;
}

// With one class, every prediction would be right.
void require_two_classes(const data::Dataset& train, const std::vector<std::string>& names, const std::string& path) {
  const int64_t first = train.label(0);
  for (int64_t i = 1; i < train.size(); ++i) {
    if (train.label(i) != first) return;
  }
  throw Error(path, "images of at least two classes", "one class: " + names.at(static_cast<size_t>(first)));
}

LabelledFeatures features_of(const data::Dataset& dataset, const Model& model, const KnnCommandOptions& options,
                             const GlobalOptions& global) {
  const ImageSource source{static_cast<size_t>(dataset.size()),
                           [&](size_t i) { return dataset.path(static_cast<int64_t>(i)); },
                           [&](size_t i) { return dataset.image(static_cast<int64_t>(i)); }};
  LabelledFeatures result;
  std::vector<float> values;
  const infer::Request request{.output = infer::Output::features, .features = {.l2_normalize = true}};
  result.failures = run_images(source, model, request, options.images.batch, global, [&](const Outcome& outcome) {
    if (!outcome.error.empty()) return;
    const Tensor row = outcome.result().contiguous();
    values.insert(values.end(), row.data<float>(), row.data<float>() + row.numel());
    result.labels.push_back(dataset.label(static_cast<int64_t>(outcome.index)));
  });
  const auto count = static_cast<int64_t>(result.labels.size());
  if (count == 0) throw Error("k-NN", "readable images", "none");
  result.rows = Tensor::from<float>({count, static_cast<int64_t>(values.size()) / count}, values);
  return result;
}

int knn(const KnnCommandOptions& options, const GlobalOptions& global) {
  const Model model = load_model(options.model, global);
  data::DatasetOptions dataset_options;
  dataset_options.multi_label = false;
  dataset_options.decode.mode = model.color_mode();
  dataset_options.decode.apply_exif = options.images.exif;
  LabelledSets sets = options.sets;
  const auto train = open_split(sets, options.train, options.train_split, {"train"}, dataset_options);
  dataset_options.labels = classes_of(*train);
  require_two_classes(*train, dataset_options.labels, options.train);
  dataset_options.num_classes = static_cast<int64_t>(dataset_options.labels.size());
  const auto test = open_split(sets, options.test, options.test_split, {"test", "val"}, dataset_options);
  if (!global.quiet) print_note("vitrail: training set: " + data::summary(*train, options.train));
  if (!global.quiet) print_note("vitrail: test set: " + data::summary(*test, options.test));
  data::warn_of_shared_images({.dataset = *train, .name = "training"}, {.dataset = *test, .name = "test"});

  const LabelledFeatures train_features = features_of(*train, model, options, global);
  const LabelledFeatures test_features = features_of(*test, model, options, global);
  int64_t classes = dataset_options.num_classes;
  for (const LabelledFeatures* features : {&train_features, &test_features}) {
    for (const int64_t label : features->labels) classes = std::max(classes, label + 1);
  }
  const Tensor votes =
      analysis::knn_votes(train_features.rows, train_features.labels, test_features.rows, classes, options.knn);
  // A class without a vote is no prediction.
  std::replace(votes.data<float>(), votes.data<float>() + votes.numel(), 0.0f, -std::numeric_limits<float>::infinity());
  data::Accuracy accuracy;
  for (int64_t i = 0; i < votes.size(0); ++i) {
    accuracy.add({votes.data<float>() + i * classes, static_cast<size_t>(classes)},
                 test_features.labels[static_cast<size_t>(i)], "k-NN");
  }
  print_result({{"images", accuracy.images()},
                {"training_images", train_features.rows.size(0)},
                {"k", options.knn.k},
                {"top1", accuracy.top1()},
                {"top1_interval", data::interval_json(accuracy.top1(), accuracy.images())},
                {"top5", accuracy.top5()},
                {"top5_interval", data::interval_json(accuracy.top5(), accuracy.images())}},
               TableFormat());
  return train_features.failures + test_features.failures == 0 ? 0 : 1;
}

}  // namespace

void add_knn(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<KnnCommandOptions>();
  CLI::App* command = program.add_subcommand("knn", "Classify with k nearest neighbours in feature space");
  command->footer("Example: vitrail knn -m MODEL cifar10.zip cifar10.zip --k 20");
  command
      ->add_option("TRAIN", options->train, "Training set: a dataset (see eval); its train split is used if it has one")
      ->required();
  command->add_option("TEST", options->test, "Test set: a dataset (see eval); its test split is used if it has one")
      ->required();
  options->model.add_to(*command);
  add_field_options(*command, [options](Fields& f) {
    f.integer({"k", "Number of neighbours"}, options->knn.k, 1);
    f.number({"temperature", "Vote weight of a neighbour: exp(cosine / temperature)"}, options->knn.temperature,
             kAboveZero);
  });
  command->add_flag("--plain,--uniform", options->knn.plain, "Uniform vote weights")
      ->excludes(command->get_option("--temperature"));
  command->add_option("--train-split", options->train_split, "Split of TRAIN (default: train, else all images)");
  command->add_option("--test-split", options->test_split, "Split of TEST (default: test, else val, else all images)");
  add_columns(*command, options->sets.columns);
  options->images.add_to(*command);
  command->callback([options, &global, &run] { run = [options, &global] { return knn(*options, global); }; });
}

}  // namespace vitrail::app
