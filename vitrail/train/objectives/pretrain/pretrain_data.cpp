// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/pretrain/pretrain_data_internal.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/unlabelled.h"
#include "vitrail/data/loader/decoded_cache.h"
#include "vitrail/data/loader/sampler_internal.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

// At most kMaxProbeImages evenly spaced images.
Subset limited(Subset subset) {
  const int64_t size = subset.size();
  if (size <= kMaxProbeImages) return subset;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < kMaxProbeImages; ++i) {
    const int64_t at = i * size / kMaxProbeImages;
    kept.push_back(subset.samples.empty() ? at : subset.samples[static_cast<size_t>(at)]);
  }
  subset.samples = std::move(kept);
  subset.name = str(kMaxProbeImages, " of ", subset.name);
  return subset;
}

// Nothing is to be learned from copies of one image, whatever their sizes.
void require_different_images(const Subset& train, const std::string& path) {
  constexpr int64_t kMaxCompared = 100, kSide = 8;  // evenly spaced images, as thumbnails
  const int64_t size = train.size(), compared = std::min(size, kMaxCompared);
  std::vector<uint8_t> first;
  for (int64_t i = 0; i < compared; ++i) {
    try {
      const image::Image image = train.dataset->image(train.samples[static_cast<size_t>(i * size / compared)]);
      std::vector<uint8_t> pixels = image::resize(image, kSide, kSide, image::Filter::bilinear).pixels;
      if (first.empty())
        first = std::move(pixels);
      else if (pixels != first)
        return;
    } catch (const Error&) {  // require_readable_images() reports it
    }
  }
  throw Error(path, "images that differ", str(compared, " of ", size, " compared, all copies of one image"));
}

}  // namespace

RunData open_unlabelled_sets(const DataRecipe& recipe, int64_t channels) {
  const image::DecodeOptions decode{.mode = infer::color_mode_of(channels), .apply_exif = recipe.exif};
  RunData data;
  data.train.dataset = data::open_unlabelled(find_dataset(recipe.train), decode);
  const int64_t size = data.train.dataset->size(), count = recipe.holdout.value_or(data::unlabelled_holdout(size));
  if (size < kMinUnlabelled) throw Error(recipe.train, str("at least ", kMinUnlabelled, " images"), str(size));
  if (count >= size) throw Error("data.holdout", str("fewer than the ", size, " images"), str(count));
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int64_t> order = data::epoch_order(all, true, recipe.holdout_seed, 0);
  data.train.samples.assign(order.begin() + count, order.end());
  std::ranges::sort(data.train.samples);
  data.train.name = str(count > 0 ? str(size - count, " of ") : "", counted(size, "image"), " of ", recipe.train);
  if (count == 0) return data;
  data.validation = {data.train.dataset, {order.begin(), order.begin() + count}, ""};
  std::ranges::sort(data.validation.samples);
  data.validation.name = str(counted(count, "image"), " held out of ", recipe.train);
  return data;
}

RunData open_unlabelled_data(const DataRecipe& recipe, int64_t channels) {
  RunData data = open_unlabelled_sets(recipe, channels);
  if (data.train.size() < kFewUnlabelled) {
    warn(str(recipe.train, ": ", counted(data.train.size(), "training image"), "; with fewer than ", kFewUnlabelled,
             ", learning without labels seldom helps"));
  }
  if (recipe.keep_decoded_mb > 0)
    data.train.dataset = data::cache_decoded(data.train.dataset, recipe.keep_decoded_mb << 20);
  if (data.validation.dataset) data.validation.dataset = data.train.dataset;
  require_readable_images(data.train, recipe.train);
  require_different_images(data.train, recipe.train);
  return data;
}

ProbeSets open_probe(const std::string& path, const DataRecipe& recipe, int64_t channels) {
  DataRecipe probe{.train = path, .exif = recipe.exif, .keep_decoded_mb = recipe.keep_decoded_mb};
  const std::vector<std::string> splits = manifest_of(probe, path)->splits();
  for (const char* const split : {"test", "val"}) {
    if (!probe.val.empty() || std::ranges::count(splits, split) == 0) continue;
    probe.val = path;
    probe.val_split = split;
  }
  RunData data = open_data(probe, channels);
  if (data.multi_label) throw Error(path, "images with one label each, for a probe", "several labels per image");
  return {limited(std::move(data.train)), limited(std::move(data.validation)), std::ssize(data.classes)};
}

}  // namespace vitrail::train
