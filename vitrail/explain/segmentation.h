// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning page of Segment Anything: the image encoder's embedding, the prompt as tokens, the two-way transformer
// between tokens and image, and masks as products of hypernetworks and the upscaled embedding.
#include "vitrail/explain/explain.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::explain {

struct SegmentedImage {
  const image::Image& photo;
  std::string name = {};    // the image's
  std::string model = {};   // the model's
  sam::Prompt prompt = {};  // points and a box; none: a point in the middle of the image
};

// sam: in f32, with its weights.  options: detail and language.  Throws Error for a prompt that sam::check_prompt()
// refuses or that has a mask, and for an image encoder alone.
LearningPage explain_segmentation(const models::Sam& sam, const SegmentedImage& image, const ExplainOptions& options);

}  // namespace vitrail::explain
