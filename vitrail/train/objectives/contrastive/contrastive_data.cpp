// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/contrastive/contrastive_data_internal.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/datasets/pair_set.h"
#include "vitrail/data/datasets/unlabelled.h"
#include "vitrail/data/loader/decoded_cache.h"
#include "vitrail/data/loader/sampler_internal.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

std::string captions_text(int64_t captions) { return " with " + counted(captions, "caption"); }

int64_t captions_of(const Subset& subset, const ImageCaptions& captions) {
  int64_t count = 0;
  for (const int64_t image : subset.samples) count += std::ssize(captions[static_cast<size_t>(image)]);
  return count;
}

std::vector<int64_t> every_index(const data::Dataset& images) {
  std::vector<int64_t> all(static_cast<size_t>(images.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Holds out images, so that captions of one are never on both sides.
void hold_out_pairs(const DataRecipe& recipe, PairData& data) {
  Subset& train = data.images.train;
  const int64_t size = train.size(), count = recipe.holdout.value_or(data::unlabelled_holdout(size));
  if (count >= size) throw Error("data.holdout", str("fewer than the ", counted(size, "image")), str(count));
  const std::vector<int64_t> order = data::epoch_order(train.samples, true, recipe.holdout_seed, 0);
  train.samples.assign(order.begin() + count, order.end());
  std::ranges::sort(train.samples);
  if (count == 0) return;
  Subset& held_out = data.images.validation = {train.dataset, {order.begin(), order.begin() + count}, ""};
  std::ranges::sort(held_out.samples);
  data.validation = data.train;
  held_out.name =
      counted(count, "image") + captions_text(captions_of(held_out, *data.train)) + " held out of " + recipe.train;
}

}  // namespace

PairData open_pair_sets(const DataRecipe& recipe, int64_t channels) {
  const auto read = [&](const std::string& path, const char* split) {
    const std::filesystem::path found = find_dataset(path);
    data::PairSetOptions options{.columns = data::parse_columns(recipe.columns),
                                 .decode = {.mode = infer::color_mode_of(channels), .apply_exif = recipe.exif}};
    const std::vector<std::string> splits = data::pair_set_splits(found, options.columns);
    if (std::ranges::count(splits, split) > 0) options.split = split;
    return data::open_pair_set(found, options);
  };
  const auto open = [&](const std::string& path, const char* split, Subset& images) {
    data::PairSet pairs = read(path, split);
    images = {pairs.images, every_index(*pairs.images), ""};
    return std::make_shared<const ImageCaptions>(std::move(pairs.captions));
  };
  const auto set_name = [](Subset& images, const ImageCaptions& captions, const std::string& path) {
    images.name = counted(images.size(), "image") + captions_text(captions_of(images, captions)) + " of " + path;
  };
  PairData data;
  RunData& images = data.images;
  data.train = open(recipe.train, "train", images.train);
  if (recipe.val.empty()) {
    hold_out_pairs(recipe, data);
  } else {
    data.validation = open(recipe.val, "val", images.validation);
    set_name(images.validation, *data.validation, recipe.val);
  }
  if (!recipe.test.empty()) {
    data.test = open(recipe.test, "test", images.test);
    set_name(images.test, *data.test, recipe.test);
  }
  set_name(images.train, *data.train, recipe.train);
  return data;
}

PairData open_pair_data(const DataRecipe& recipe, int64_t channels) {
  PairData data = open_pair_sets(recipe, channels);
  Subset &train = data.images.train, &validation = data.images.validation;
  if (recipe.keep_decoded_mb > 0) {
    const bool same = validation.dataset == train.dataset;
    train.dataset = data::cache_decoded(train.dataset, recipe.keep_decoded_mb << 20);
    if (same) validation.dataset = train.dataset;
  }
  require_readable_images(train, recipe.train);
  return data;
}

int64_t shared_captions(const Subset& images, const ImageCaptions& captions) {
  std::map<std::string_view, int64_t> uses;
  for (const int64_t image : images.samples) {
    for (const std::string& caption : captions[static_cast<size_t>(image)]) ++uses[caption];
  }
  int64_t shared = 0;
  for (const auto& [caption, count] : uses) shared += count > 1 ? count : 0;
  return shared;
}

CaptionTokens::CaptionTokens(const DualTexts& texts, const ImageCaptions& captions, const data::Dataset& images) {
  const WarningPause pause;  // full() counts the captions that are cut
  for (size_t image = 0; image < captions.size(); ++image) {
    const std::string where = images.path(static_cast<int64_t>(image)) + ": caption";
    for (const std::string& caption : captions[image]) {
      const std::vector<int64_t> ids = texts.token_ids(caption, where);
      texts.check(ids, where);
      full_ += std::ssize(ids) == texts.config().context_length ? 1 : 0;
      ids_.insert(ids_.end(), ids.begin(), ids.end());
      begin_.push_back(ids_.size());
    }
    first_.push_back(first_.back() + std::ssize(captions[image]));
  }
}

std::vector<int64_t> CaptionTokens::ids(int64_t caption) const {
  const auto at = static_cast<size_t>(caption);
  return {ids_.begin() + static_cast<std::ptrdiff_t>(begin_[at]),
          ids_.begin() + static_cast<std::ptrdiff_t>(begin_[at + 1])};
}

int64_t drawn_caption(const CaptionTokens& captions, int64_t image, uint64_t seed, int64_t epoch) {
  RandomStream random(random_key("caption", seed, static_cast<uint64_t>(epoch)), static_cast<uint64_t>(image));
  return captions.first(image) + static_cast<int64_t>(random.bits()) % captions.count(image);
}

ZeroShotSet open_zero_shot(const std::string& path, const DataRecipe& recipe, int64_t channels) {
  const data::DatasetOptions options{.decode = {.mode = infer::color_mode_of(channels), .apply_exif = recipe.exif}};
  std::shared_ptr<const data::Dataset> images = manifest_of({.manifests = recipe.manifests}, path)->open(options);
  if (images->is_multi_label())
    throw Error(path, "images with one label each, for zero-shot accuracy", "several labels per image");
  if (images->class_names().empty()) throw Error(path, "names of its classes, for zero-shot accuracy", "none");
  ZeroShotSet set{.images = {images, {}, ""}, .labels = images->class_names()};
  const int64_t size = images->size(), count = std::min(size, kMaxZeroShotImages);
  for (int64_t i = 0; i < count; ++i) set.images.samples.push_back(i * size / count);
  set.images.name = str(counted(count, "image"), " of ", path, ", ", counted(set.labels.size(), "label"));
  return set;
}

}  // namespace vitrail::train
