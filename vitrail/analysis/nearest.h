// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exact search by inner product, which is the cosine similarity of unit vectors.  Similarities are computed in blocks:
// memory does not grow with the number of rows.
#include <functional>
#include <vector>

#include "vitrail/analysis/vector_rows.h"

namespace vitrail::analysis {

// The cosine similarity of features that copies of an image in other sizes and qualities reach, and different
// photographs do not.
inline constexpr double kNearIdentical = 0.9;

struct Neighbor {
  int64_t row = 0;
  float score = 0;  // inner product
};

// For each of `queries` [m, D], the k nearest rows, or all if there are fewer: the largest inner product first, of
// equal ones the lower row.  The result does not depend on the number of threads.  Throws Error for queries of another
// width, for k below 1, and for values that are not finite.
std::vector<std::vector<Neighbor>> nearest_rows(const Tensor& queries, const VectorRows& rows, int64_t k);

// Calls on_pair(i, j, inner product) for each pair of rows i < j whose inner product is at least `threshold`.  Calls do
// not overlap; their order varies.  Throws Error for values that are not finite.
using OnPair = std::function<void(int64_t i, int64_t j, float score)>;
void similar_pairs(const VectorRows& rows, float threshold, const OnPair& on_pair);

}  // namespace vitrail::analysis
