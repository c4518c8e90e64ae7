// SPDX-License-Identifier: Apache-2.0
#pragma once
// The samples of detection training: an image and its objects, augmented together.
#include <memory>
#include <vector>

#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment.h"
#include "vitrail/image/image.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/train/objectives/detection/detection_data_internal.h"
#include "vitrail/train/objectives/detection/detection_loss_internal.h"
#include "vitrail/train/objectives/sample_cache_internal.h"

namespace vitrail::train {

struct ObjectSample {
  image::Image image = {};  // RGB, or grey
  std::vector<data::LabelledObject> objects = {};

  int64_t bytes() const {
    return static_cast<int64_t>(image.pixels.size() + objects.size() * sizeof(data::LabelledObject));
  }
};

// A dataset with a cache in memory.  Const functions are thread-safe.
class ObjectSamples {
 public:
  ObjectSamples(std::shared_ptr<const ObjectDataset> dataset, image::ColorMode mode, const DataRecipe& recipe);

  // The sample of an image; null if it cannot be read and recipe.unreadable is "skip".  The first time, that is counted
  // and a warning.
  std::shared_ptr<const ObjectSample> get(int64_t image) const;
  int64_t unreadable() const { return cache_.unreadable(); }

 private:
  ObjectSample read(int64_t image) const;

  std::shared_ptr<const ObjectDataset> dataset_;
  image::ColorMode mode_;
  bool exif_;
  SampleCache<ObjectSample> cache_;
};

// The objects of a whole image, without those of a crowd.
DetectionTargets targets_of(const ObjectSample& sample);

// A crop and a flip move the boxes too; other augmentation is of the image.  A mosaic has four images in its quarters
// (Bochkovskiy et al. 2020, "YOLOv4").
class ObjectAugmentation {
 public:
  ObjectAugmentation(const Recipe& recipe, const image::EvalTransform& transform);

  // Whether a sample is a mosaic, by the draws of its key; then the indices of the other three among `count` samples.
  std::vector<int64_t> mosaic_of(const data::AugmentKey& key, int64_t count) const;

  // The model's input [C, H, W], and the objects in it, of one sample or of the four of a mosaic.  The draws depend on
  // the key alone.  An object with less than a quarter of its box is left out.
  DetectionTargets apply(const std::vector<std::shared_ptr<const ObjectSample>>& samples, const data::AugmentKey& key,
                         float* image) const;

 private:
  struct Part;
  image::Window place_of(size_t sample, size_t samples) const;
  Part part_of(const ObjectSample& sample, RandomStream& random, int64_t height, int64_t width) const;

  std::optional<data::RandomResizedCrop> crop_;
  bool flip_;
  double mosaic_;
  std::array<int64_t, 2> size_;
  image::Filter filter_;
  data::Augmentation colors_;
};

}  // namespace vitrail::train
