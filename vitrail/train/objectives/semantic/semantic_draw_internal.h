// SPDX-License-Identifier: Apache-2.0
#pragma once
// The samples of semantic training: an image and its map, augmented together.
#include <memory>
#include <vector>

#include "vitrail/data/augment/augment.h"
#include "vitrail/train/objectives/sample_cache_internal.h"
#include "vitrail/train/objectives/semantic/semantic_data_internal.h"

namespace vitrail::train {

struct MapSample {
  image::Image image = {};   // RGB, or grey
  image::Image labels = {};  // has the image's size

  int64_t bytes() const { return static_cast<int64_t>(image.pixels.size() + labels.pixels.size()); }
};

// A dataset with a cache in memory.  Const functions are thread-safe.
class MapSamples {
 public:
  // Errors of labels that are neither below `classes` nor `ignored` name the map.
  MapSamples(std::shared_ptr<const MapDataset> dataset, int64_t classes, int64_t ignored, image::ColorMode mode,
             const DataRecipe& recipe);

  // The sample of an image; null if its files cannot be read and recipe.unreadable is "skip".  The first time, that is
  // counted and a warning.
  std::shared_ptr<const MapSample> get(int64_t image) const;

  const MapDataset& dataset() const { return *dataset_; }
  int64_t unreadable() const { return cache_.unreadable(); }

 private:
  MapSample read(int64_t image) const;

  std::shared_ptr<const MapDataset> dataset_;
  int64_t classes_, ignored_;
  image::ColorMode mode_;
  bool exif_;
  SampleCache<MapSample> cache_;
};

// A crop and a flip are those of both; other augmentation is of the image.
class MapAugmentation {
 public:
  MapAugmentation(const Recipe& recipe, const image::EvalTransform& transform);

  // The model's input [C, H, W] and the labels [H, W] of a sample.  The draws depend on the key alone.  The image is
  // resampled with the recipe's filter, and the map by the nearest pixel.
  void apply(const MapSample& sample, const data::AugmentKey& key, float* image, int64_t* labels) const;

 private:
  std::optional<data::RandomResizedCrop> crop_;
  bool flip_;
  image::EvalTransform transform_;
  data::Augmentation colors_;
};

}  // namespace vitrail::train
