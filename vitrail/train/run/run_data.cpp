// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_data_internal.h"

#include <algorithm>
#include <utility>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/memory_limit.h"
#include "vitrail/base/text.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/datasets/holdout_split.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/loader/decoded_cache.h"
#include "vitrail/data/loader/shared_images.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/train/objectives/classification/class_weights_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

using DatasetPtr = std::shared_ptr<const data::Dataset>;

// Opens the requested split, or without a request the first default split that it has, or all images if the dataset has
// no splits.
DatasetPtr open_split(const DataRecipe& recipe, const std::string& path, const std::string& requested,
                      std::vector<std::string> default_splits, data::DatasetOptions options) {
  options.split = requested;
  options.default_splits = std::move(default_splits);
  return manifest_of(recipe, path)->open(options);
}

// Caches decoded images in memory up to the recipe's limit.
DatasetPtr with_cache(DatasetPtr dataset, const DataRecipe& recipe) {
  return recipe.keep_decoded_mb > 0 ? data::cache_decoded(std::move(dataset), recipe.keep_decoded_mb << 20) : dataset;
}

// Names are written to JSON files, at the latest when an epoch has been trained.
void require_utf8(const std::vector<std::string>& names, const std::string& path) {
  for (const std::string& name : names) {
    if (!is_utf8(name)) {
      throw Error(path, "class names in UTF-8 (rename the folder; save a list as UTF-8)",
                  "'" + escape_non_utf8(name) + "'");
    }
  }
}

std::vector<std::string> classes_of(const data::Dataset& dataset, const std::string& path) {
  std::vector<std::string> names = dataset.class_names();
  require_utf8(names, path);
  int64_t max = -1, min = INT64_MAX;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    for (const int64_t label : dataset.labels(i)) max = std::max(max, label), min = std::min(min, label);
  }
  if (max < 0) throw Error(path, "images of at least two classes", "images without labels");
  if (names.empty()) {
    for (int64_t i = 0; i <= max; ++i) names.push_back(std::to_string(i));
  }
  if (names.size() < 2 || max == min)
    throw Error(path, "images of at least two classes", "one class: " + names[static_cast<size_t>(min)]);
  return names;
}

Subset all_of(const DatasetPtr& dataset, const std::string& path) {
  return Subset{dataset, {}, data::summary(*dataset, path)};
}

// Who chose the recipe was told what the dataset lacks.
std::vector<std::string> known_splits(const DataRecipe& recipe, const std::string& path) {
  const WarningPause pause;
  return manifest_of(recipe, path)->splits();
}

// Whether `recipe.val` has only a test split, as CIFAR and MNIST, and validation is to use held-out training images.
bool is_test_set(const DataRecipe& recipe) {
  if (!recipe.val_split.empty() || recipe.holdout == 0) return false;
  if (!recipe.test.empty() && recipe.test != recipe.val) return false;
  const std::vector<std::string> splits = known_splits(recipe, recipe.val);
  const auto has = [&](const char* split) { return std::find(splits.begin(), splits.end(), split) != splits.end(); };
  return !has("val") && has("test");
}

void hold_out_fold(const data::Dataset& train, const DataRecipe& recipe, RunData& run) {
  data::HoldoutSplit split = data::fold_split(train, recipe.folds, recipe.fold - 1, recipe.holdout_seed);
  run.train.name = str(split.train.size(), " of ", data::summary(train, recipe.train));
  run.train.samples = std::move(split.train);
  run.validation = Subset{nullptr, std::move(split.held_out), ""};
  run.validation.name = str("fold ", recipe.fold, " of ", recipe.folds, ", ", run.validation.samples.size(), " images");
}

// Holds out training images for validation.  An existing validation set then becomes the test set, unless there is one.
void hold_out(const data::Dataset& train, const DataRecipe& recipe, RunData& run) {
  if (recipe.folds > 0) return hold_out_fold(train, recipe, run);
  const auto classes = static_cast<int64_t>(run.classes.size());
  const int64_t default_count = run.validation.dataset ? 0 : data::default_holdout(train.size(), classes);
  const int64_t held_out = recipe.holdout.value_or(default_count);
  if (held_out >= train.size())
    throw Error("data.holdout", str("fewer than the ", train.size(), " training images"), str(held_out));
  run.train.name = data::summary(train, recipe.train);
  if (held_out == 0) return;
  run.train.name = str(train.size() - held_out, " of ", run.train.name);
  data::HoldoutSplit split = data::holdout_split(train, held_out, recipe.holdout_seed);
  run.train.samples = std::move(split.train);
  if (run.validation.dataset && !run.test.dataset) run.test = run.validation;
  const std::string path = recipe.train + (train.split().empty() ? "" : "/" + train.split());
  run.validation = Subset{nullptr, std::move(split.held_out), counted(held_out, "image") + " held out of " + path};
}

// Accuracies on images that are also trained on are no measure.  No model fits an image that is in two classes.
void report_identical_images(const data::Dataset& train, const RunData& run) {
  const data::NamedSamples training{train, run.train.samples, "training"};
  const data::NamedSamples validation{run.validation.dataset ? *run.validation.dataset : train, run.validation.samples,
                                      "validation"};
  const bool validates = run.validation.dataset || !run.validation.samples.empty();
  data::warn_of_contradicting_labels({.dataset = train, .name = "training"});
  if (validates) data::warn_of_shared_images(training, validation);
  if (!run.test.dataset) return;
  const data::NamedSamples test{*run.test.dataset, run.test.samples, "test"};
  data::warn_of_shared_images(training, test);
  if (validates) data::warn_of_shared_images(validation, test);
}

// An evaluation counts [label][prediction].
void require_countable_classes(size_t classes, const std::string& path) {
  const double bytes = sizeof(int64_t) * static_cast<double>(classes) * static_cast<double>(classes);
  if (bytes <= static_cast<double>(memory_limit()) / 4) return;
  throw Error(path, "classes × classes that fit into a quarter of the memory", str(classes, " classes"));
}

// A fold has the only image of a class, or a list of classes one without images.
void report_untrained_classes(const RunData& run) {
  const std::vector<int64_t> counts = class_counts(run.train, run.classes.size());
  const auto untrained = std::ranges::count(counts, 0);
  if (untrained == 0) return;
  const auto first = static_cast<size_t>(std::ranges::find(counts, 0) - counts.begin());
  warn(str("classes without training images: ", untrained, " of ", counts.size(), " (", run.classes[first],
           untrained > 1 ? ", …)" : ")"));
}

// A recipe that names the training data alone uses one of its splits.
void report_unused_splits(const data::Dataset& train, const DataRecipe& recipe) {
  if (train.split().empty() || !recipe.val.empty() || !recipe.test.empty()) return;
  std::vector<std::string> unused;
  for (const std::string& split : known_splits(recipe, recipe.train)) {
    if (split != data::canonical_split(train.split())) unused.push_back(split);
  }
  if (unused.empty()) return;
  warn(str(recipe.train, ": images of ", join(unused, " and "),
           " are not used: the recipe's data.val and data.test are empty"));
}

}  // namespace

int64_t Subset::size() const {
  if (!dataset) return 0;
  return samples.empty() ? dataset->size() : static_cast<int64_t>(samples.size());
}

// A list may name files of another folder.  That ends the run before it writes anything.
void require_readable_images(const Subset& train, const std::string& path) {
  constexpr int64_t kMaxTried = 100;
  const int64_t size = train.size(), tried = std::min(size, kMaxTried);
  std::string failure;
  for (int64_t i = 0; i < tried; ++i) {
    const int64_t at = i * size / tried;
    try {
      train.dataset->image(train.samples.empty() ? at : train.samples[static_cast<size_t>(at)]);
      return;
    } catch (const Error& error) {
      if (failure.empty()) failure = error.what();
    }
  }
  throw Error(path, "training images that can be read", str("none of ", tried, " (", failure, ")"));
}

RunData open_sets(const DataRecipe& recipe, int64_t channels) {
  RunData run;
  data::DatasetOptions options;
  options.decode.mode = infer::color_mode_of(channels);
  options.decode.apply_exif = recipe.exif;
  const DatasetPtr train = open_split(recipe, recipe.train, recipe.train_split, {"train"}, options);
  run.classes = classes_of(*train, recipe.train);
  options.labels = run.classes;
  options.num_classes = static_cast<int64_t>(run.classes.size());
  options.multi_label = run.multi_label = train->is_multi_label();
  if (!run.multi_label) require_countable_classes(run.classes.size(), recipe.train);

  if (!recipe.val.empty()) {
    const bool is_test = is_test_set(recipe);
    std::vector<std::string> wanted{"val"};
    if (is_test) wanted.emplace_back("test");
    const DatasetPtr val = open_split(recipe, recipe.val, recipe.val_split, wanted, options);
    (is_test ? run.test : run.validation) = all_of(val, recipe.val);
  }
  if (!recipe.test.empty()) {
    run.test = all_of(open_split(recipe, recipe.test, recipe.test_split, {"test"}, options), recipe.test);
  }
  hold_out(*train, recipe, run);
  report_unused_splits(*train, recipe);
  run.train.dataset = train;
  if (!run.validation.dataset && !run.validation.samples.empty()) run.validation.dataset = train;
  return run;
}

RunData open_data(const DataRecipe& recipe, int64_t channels) {
  RunData run = open_sets(recipe, channels);
  const DatasetPtr train = run.train.dataset;
  run.train.dataset = with_cache(train, recipe);
  if (run.validation.dataset == train) run.validation.dataset = run.train.dataset;
  require_readable_images(run.train, recipe.train);
  report_untrained_classes(run);
  report_identical_images(*train, run);
  recipe.manifests.clear();  // a later run with the recipe reads the sets as they then are
  return run;
}

}  // namespace vitrail::train
