// SPDX-License-Identifier: Apache-2.0
#pragma once
// The samples of segmentation training: images and masks in the frame of the encoder's input.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/sam/image_input_internal.h"
#include "vitrail/sam/instance_dataset.h"
#include "vitrail/train/objectives/sample_cache_internal.h"

namespace vitrail::train {

struct SegmentSample {
  image::Image image = {};           // RGB as it is in the frame of the encoder's input
  std::string key = {};              // sam::embedding_key() of its file
  std::vector<sam::Rle> masks = {};  // [size, size], padded on the right and below as the input

  int64_t bytes() const;
};

// An instance dataset in the frame of a model, with a cache in memory.  Const functions are thread-safe.
class SegmentSamples {
 public:
  SegmentSamples(std::shared_ptr<const sam::InstanceDataset> dataset, const sam::InputFrame& frame,
                 const DataRecipe& recipe);

  // The sample of an image; null if its files cannot be read and recipe.unreadable is "skip".  The first time, that is
  // counted and a warning.
  std::shared_ptr<const SegmentSample> get(int64_t image) const;

  const sam::InstanceDataset& dataset() const { return *dataset_; }
  int64_t unreadable() const { return cache_.unreadable(); }

 private:
  SegmentSample read(int64_t image) const;

  std::shared_ptr<const sam::InstanceDataset> dataset_;
  sam::InputFrame frame_;
  bool exif_;
  SampleCache<SegmentSample> cache_;
};

// A mask of an image of another size in the frame: its pixels are those that are covered by half.
sam::Rle framed_mask(const sam::Rle& mask, const sam::InputFrame& frame);

}  // namespace vitrail::train
