// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run_data.h"

#include <algorithm>
#include <optional>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/decoded_cache.h"
#include "vitrail/data/holdout_split.h"
#include "vitrail/infer/preprocess.h"

namespace vitrail::train {
namespace {

using Opened = std::shared_ptr<const data::Dataset>;

// A dataset under one of its splits; null where it does not open so.
Opened try_open(const std::string& path, const std::string& split, data::DatasetOptions options) {
  const WarningCallback before = set_warning_callback(nullptr);  // a look is no reason to warn
  options.split = split;
  Opened opened;
  try {
    opened = data::open_dataset(expand_path(path), options);
  } catch (const Error&) {
  }
  set_warning_callback(before);
  return opened;
}

Opened open(const std::string& path, const std::string& split, data::DatasetOptions options) {
  options.split = split;
  return data::open_dataset(expand_path(path), options);
}

// The split asked for; else `usual` where the dataset has splits, and all of it where it has none.
Opened open_split(const std::string& path, const std::string& asked, const std::string& usual,
                  const data::DatasetOptions& options) {
  if (!asked.empty()) return open(path, asked, options);
  if (try_open(path, usual, options)) return open(path, usual, options);  // again, with its warnings
  for (const char* other : {"train", "val", "test"}) {
    if (other != usual && try_open(path, other, options))
      return open(path, usual, options);  // which says what is there
  }
  return open(path, "", options);
}

// A grey or colour reader of pictures, kept in memory as far as the recipe allows.
Opened kept(Opened dataset, const DataRecipe& recipe) {
  return recipe.keep_decoded_mb > 0 ? data::cache_decoded(std::move(dataset), recipe.keep_decoded_mb << 20) : dataset;
}

std::vector<std::string> classes_of(const data::Dataset& dataset, const std::string& path) {
  std::vector<std::string> names = dataset.class_names();
  int64_t most = -1, least = INT64_MAX;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    most = std::max(most, dataset.label(i));
    least = std::min(least, dataset.label(i));
  }
  if (names.empty()) {
    for (int64_t i = 0; i <= most; ++i) names.push_back(std::to_string(i));
  }
  if (names.size() < 2 || most == least)
    throw Error(path, "images of at least two classes", "one class: " + names[static_cast<size_t>(least)]);
  return names;
}

Part whole(const Opened& dataset, const std::string& path) {
  return Part{dataset, {}, str(dataset->size(), " images of ", path)};
}

// Whether `val` names what has only a test split, as CIFAR and MNIST do, and held-out images are to choose.
bool is_test_set(const DataRecipe& recipe, const data::DatasetOptions& options) {
  if (!recipe.val_split.empty() || recipe.holdout == 0) return false;
  if (!recipe.test.empty() && recipe.test != recipe.val) return false;
  return !try_open(recipe.val, "val", options) && try_open(recipe.val, "test", options);
}

// Divides the training images.  Held-out ones choose the best weights; a validation set beside them is then for the
// end.
void hold_out(const data::Dataset& train, const DataRecipe& recipe, RunData& run) {
  const int64_t usual = run.validation.dataset ? 0 : std::min<int64_t>(5000, train.size() / 10);
  const int64_t held_out = recipe.holdout.value_or(usual);
  if (held_out >= train.size())
    throw Error("data.holdout", str("fewer than the ", train.size(), " training images"), str(held_out));
  run.train.name = str(train.size() - held_out, " images of ", recipe.train);
  if (held_out == 0) return;
  data::HoldoutSplit split = data::holdout_split(train, held_out, recipe.holdout_seed);
  run.train.samples = std::move(split.train);
  if (run.validation.dataset && !run.test.dataset) run.test = run.validation;
  run.validation = Part{nullptr, std::move(split.held_out), str(held_out, " images held out of ", recipe.train)};
}

}  // namespace

int64_t Part::size() const {
  if (!dataset) return 0;
  return samples.empty() ? dataset->size() : static_cast<int64_t>(samples.size());
}

RunData open_data(const DataRecipe& recipe, int64_t channels) {
  RunData run;
  data::DatasetOptions options;
  options.decode.mode = infer::color_mode_of(channels);
  const Opened train = open_split(recipe.train, recipe.train_split, "train", options);
  run.classes = classes_of(*train, recipe.train);
  options.labels = run.classes;
  options.num_classes = static_cast<int64_t>(run.classes.size());

  if (!recipe.val.empty()) {
    const bool is_test = is_test_set(recipe, options);
    const Opened val = open_split(recipe.val, recipe.val_split, is_test ? "test" : "val", options);
    Part& part = is_test ? run.test : run.validation;
    part = whole(val, recipe.val);
  }
  if (!recipe.test.empty()) {
    run.test = whole(open_split(recipe.test, recipe.test_split, "test", options), recipe.test);
  }
  hold_out(*train, recipe, run);
  run.train.dataset = kept(train, recipe);
  if (!run.validation.dataset && !run.validation.samples.empty()) run.validation.dataset = run.train.dataset;
  return run;
}

}  // namespace vitrail::train
