// SPDX-License-Identifier: Apache-2.0
#pragma once
// What detectors whose queries or tokens give a class and a box each have in common.
#include <memory>

#include "vitrail/infer/function_session.h"
#include "vitrail/tasks/detect/detections.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

struct QueryEncoding : ImageEncoding {
  size_t bytes() const override;
  Tensor logits;  // [queries, classes], with "no object" if the model has it
  Tensor boxes;   // [queries, 4]: centre x, centre y, width and height as shares of the image's size
  Tensor masks;   // instance segmentation: logits [queries, h, w] of the whole image
};

// What a model gives of one image: its logits, boxes and masks if it has them, with a batch axis.  Throws Error for
// values that are not finite.
std::shared_ptr<QueryEncoding> query_encoding(const image::ImageView& photo, const infer::NamedTensors& outputs);

// The corners of the box of a query, in pixels of the image.
std::array<float, 4> corners_of(const QueryEncoding& encoding, int64_t query);

// The mask of a query: the pixels of the image where its logit is positive.
sam::Rle mask_of(const QueryEncoding& encoding, int64_t query);

// A request for the logits and boxes themselves, and for masks with a side above 0.
std::unique_ptr<Request> query_tensors(int64_t queries, int64_t classes, int64_t mask_side = 0);

}  // namespace vitrail::tasks
