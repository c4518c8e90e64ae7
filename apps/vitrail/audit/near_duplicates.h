// SPDX-License-Identifier: Apache-2.0
#pragma once
// Near-identical images by the cosine similarity of their features.
#include <vector>

#include "vitrail/analysis/disjoint_sets.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// Joins the sets of all unit rows [n, D] whose cosine similarity is at least `threshold`.
void join_similar(const Tensor& features, double threshold, analysis::DisjointSets& sets);

// The inner product of two rows.
double cosine(const Tensor& features, size_t i, size_t j);

}  // namespace vitrail::app
