// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pairs of a run with the objective "contrastive", and the labelled images that measure it.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/pipeline/dual_texts.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// The captions of each image of a dataset.
using ImageCaptions = std::vector<std::vector<std::string>>;

struct PairData {
  RunData images;
  // The captions of the images' datasets.  Training and validation images may be of the same one.
  std::shared_ptr<const ImageCaptions> train, validation, test;
};

// Opens the pairs of a recipe, without a cache.  Without recipe.val, recipe.holdout images, by default a tenth and at
// most 2,000, are held out with all their captions, drawn by recipe.holdout_seed.  Throws Error as
// data::open_pair_set(), and if the hold-out leaves no image.
PairData open_pair_sets(const DataRecipe& recipe, int64_t channels);

// The same with a cache.  Also throws Error if none of 100 training images can be read.
PairData open_pair_data(const DataRecipe& recipe, int64_t channels);

// How many captions of the images of a subset are those of several of its images: false negatives in a batch.
int64_t shared_captions(const Subset& images, const ImageCaptions& captions);

// The captions of a dataset's images as token ids.
class CaptionTokens {
 public:
  // Throws Error, naming the image, for a caption without tokens.
  CaptionTokens(const DualTexts& texts, const ImageCaptions& captions, const data::Dataset& images);
  int64_t count(int64_t image) const { return first_[static_cast<size_t>(image) + 1] - first(image); }
  int64_t first(int64_t image) const { return first_[static_cast<size_t>(image)]; }  // its first caption's index
  int64_t size() const { return first_.back(); }                                     // captions
  int64_t full() const {
    return full_;
  }  // captions that fill the model's context, and are cut there if they are longer
  std::vector<int64_t> ids(int64_t caption) const;

 private:
  std::vector<int64_t> first_{0};  // each image's first caption, and the number of captions
  std::vector<size_t> begin_{0};   // each caption's place in ids_
  std::vector<int32_t> ids_;
  int64_t full_ = 0;
};

// The caption of an image in an epoch, by its index: a function of the seed, the epoch and the image.
int64_t drawn_caption(const CaptionTokens& captions, int64_t image, uint64_t seed, int64_t epoch);

// A labelled dataset for zero-shot classification.
struct ZeroShotSet {
  Subset images;  // at most kMaxZeroShotImages evenly spaced ones
  std::vector<std::string> labels;
};
constexpr int64_t kMaxZeroShotImages = 10'000;

// Opens the split test of the dataset at `path`, else val, else all of it.  Throws Error as data::read_manifest(), for
// images with several labels, and for classes without names.
ZeroShotSet open_zero_shot(const std::string& path, const DataRecipe& recipe, int64_t channels);

}  // namespace vitrail::train
