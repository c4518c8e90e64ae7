// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a step of segmentation training draws for an image: a flip, masks, and their first prompts.
#include "vitrail/train/objectives/segmentation/segment_samples_internal.h"
#include "vitrail/train/objectives/segmentation/simulated_prompts_internal.h"

namespace vitrail::train {

struct DrawnPrompt {
  std::vector<sam::Point> points = {};
  std::optional<sam::Box> box = {};
  sam::BinaryMask target = {};  // [mask_size, mask_size]
  RandomStream random{0};       // draws correction clicks
};

struct DrawnSample {
  image::Image image = {};
  std::string key = {};                   // identifies the image and its flip
  std::vector<DrawnPrompt> prompts = {};  // none for an image without masks, and for an unreadable one
  bool unreadable = false;
};

class SegmentDraw {
 public:
  // mask_size: sides of the decoder's masks.  The samples must outlive this object.
  SegmentDraw(const Recipe& recipe, const SegmentSamples& samples, int64_t image_size, int64_t mask_size)
      : recipe_(recipe), samples_(samples), image_size_(image_size), mask_size_(mask_size) {}

  // The draws depend on the recipe's seed, the epoch and the position in it alone.  Masks that have no pixel in the
  // decoder's resolution are left out.
  DrawnSample draw(int64_t image, int64_t epoch, int64_t position) const;

 private:
  std::optional<DrawnPrompt> draw_prompt(const sam::BinaryMask& mask, RandomStream& random) const;

  const Recipe& recipe_;
  const SegmentSamples& samples_;
  int64_t image_size_, mask_size_;
};

}  // namespace vitrail::train
