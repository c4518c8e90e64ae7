// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/audit/near_duplicates.h"

#include <numeric>

#include "vitrail/analysis/nearest.h"

namespace vitrail::app {

void join_similar(const Tensor& features, double threshold, analysis::DisjointSets& sets) {
  analysis::similar_pairs(
      analysis::TensorRows(features), static_cast<float>(threshold),
      [&](int64_t i, int64_t j, float) { sets.join(static_cast<size_t>(i), static_cast<size_t>(j)); });
}

double cosine(const Tensor& features, size_t i, size_t j) {
  const int64_t width = features.size(1);
  const float* const a = features.data<float>() + static_cast<int64_t>(i) * width;
  return std::inner_product(a, a + width, features.data<float>() + static_cast<int64_t>(j) * width, 0.0);
}

}  // namespace vitrail::app
