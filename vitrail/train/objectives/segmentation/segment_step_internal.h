// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of a batch of segmentation training.
#include <optional>
#include <vector>

#include "vitrail/models/sam/sam.h"
#include "vitrail/sam/embedding_cache.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/segmentation/segment_draw_internal.h"
#include "vitrail/train/objectives/segmentation/segment_loss_internal.h"

namespace vitrail::train {

class SegmentStep {
 public:
  // With a frozen encoder, `cache` is the folder of what its blocks compute.  The recipe and the model must outlive
  // this object.
  SegmentStep(const Recipe& recipe, const models::Sam& model, const std::filesystem::path& cache);

  // Passes the mean loss over the prompts and rounds to `backward`, with their number as weight.  A batch without
  // prompts does nothing.
  BatchResult accumulate(std::vector<DrawnSample> batch, const Backward& backward);

 private:
  struct Prompts;  // those of a batch, which grow from round to round

  Tensor features(const std::vector<DrawnSample>& batch) const;
  Tensor cached_features(const DrawnSample& sample) const;
  models::SamMasks predict(const Tensor& images, const Prompts& prompts) const;
  void correct(const models::SamMasks& masks, Prompts& prompts) const;

  const Recipe& recipe_;
  const models::Sam& model_;
  Tensor positions_;  // encoded positions of the image's cells
  std::optional<sam::EmbeddingCache> cache_;
};

}  // namespace vitrail::train
