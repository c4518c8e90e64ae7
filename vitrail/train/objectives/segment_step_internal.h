// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forward and backward pass of a batch of segmentation training.
#include <optional>
#include <vector>

#include "vitrail/models/sam/sam.h"
#include "vitrail/sam/embedding_cache.h"
#include "vitrail/train/objectives/segment_draw_internal.h"
#include "vitrail/train/objectives/segment_loss_internal.h"

namespace vitrail::train {

struct SegmentBatchResult {
  double loss = 0;  // mean over the prompts and rounds
  double iou = 0;   // mean of the first round's best masks
  int64_t images = 0, prompts = 0;
};

class SegmentStep {
 public:
  // With a frozen encoder, `cache` is the folder of what its blocks compute.  The recipe and the model must outlive
  // this object.
  SegmentStep(const Recipe& recipe, const models::Sam& model, const std::filesystem::path& cache);

  // Accumulates the gradients of the mean loss, times `share`.  A batch without prompts does nothing.  A loss that is
  // not finite has no backward pass.
  SegmentBatchResult accumulate(std::vector<DrawnSample> batch, double share);

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
