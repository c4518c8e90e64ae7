// SPDX-License-Identifier: Apache-2.0
#pragma once
// How well a model segments objects whose masks are known: mean intersection over union (mIoU) for simulated prompts.
#include <functional>
#include <string>
#include <vector>

#include "vitrail/sam/instance_dataset.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::sam {

// Means over the objects.
struct MaskEvaluation {
  int64_t images = 0, masks = 0;
  int64_t unreadable = 0;   // images that were skipped
  double click_best = 0;    // one click: the best of the masks
  double click = 0;         // one click: the mask of the highest predicted IoU
  double three_clicks = 0;  // the single mask
  double box = 0;           // the single mask
};

struct MaskEvaluationOptions {
  bool exif = false;
  int64_t max_images = 0;  // evenly over the dataset; 0: all
  // Called for an image that cannot be read, which is then skipped; without it, the Error is thrown.
  std::function<void(const std::string& message)> unreadable = {};
  std::function<void(int64_t done, int64_t total)> progress = {};  // images, after each of them
};

// The first click is in the middle of the object: at the pixel that is furthest from the outside.  The second and third
// clicks are in the middle of the largest error of the mask before, and its logits are a prompt too, as when a user
// corrects a mask.  The box is the object's bounding box.
MaskEvaluation evaluate_masks(const Predictor& predictor, const InstanceDataset& dataset,
                              const MaskEvaluationOptions& options = {});

// The pixel of the mask that is furthest from all others, the border of the image included; distances are counted in
// steps along rows and columns.  Of several, the first.  label: 1.  The mask must not be empty.
Point middle_of(const BinaryMask& mask);

// Intersection over union; 1 if both are empty.  Throws Error for masks of different sizes.
double intersection_over_union(const BinaryMask& a, const BinaryMask& b);

}  // namespace vitrail::sam
