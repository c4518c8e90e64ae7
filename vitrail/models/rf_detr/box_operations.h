// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations on boxes: centre x, centre y, width and height as shares of the image's size.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

// Boxes that are `deltas` away from others: the centre moves by shares of the size, which is multiplied by e^δ.  Both
// are [B, N, 4], or [1, N, 4] for all images.  Differentiable.
Tensor refined_boxes(const Tensor& boxes, const Tensor& deltas);

// The `count` boxes whose largest score is highest, the best one first: scores [B, N, C], boxes [B, N, 4] → [B, count,
// 4].  Of equal ones the first is better.  Without gradient.  Throws Error if there are fewer.
Tensor best_boxes(const Tensor& scores, const Tensor& boxes, int64_t count);

// The rows of these boxes in [B · N, 4], as integers [B · count].
Tensor best_rows(const Tensor& scores, int64_t count);

struct ScoredClass {
  int64_t query = 0, index = 0;  // index: the class
  float score = 0;               // its probability
};

// The `count` best of all classes of all queries of an image, the best one first; fewer if there are fewer.
// logits [Q, C].  Of equal ones the first is better.
std::vector<ScoredClass> best_classes(const Tensor& logits, int64_t count);

// The sine code of boxes [B, Q, 4] → [B, Q, 4·dim]: dim values each for y, x, width and height, the sine and the cosine
// of 2π·v / 10000^(2j / dim) for j < dim / 2 in turn.  Differentiable.  Throws Error for an odd dim.
Tensor sine_code(const Tensor& boxes, int64_t dim);

}  // namespace vitrail::models
