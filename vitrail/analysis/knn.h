// SPDX-License-Identifier: Apache-2.0
#pragma once
// k-nearest-neighbour classification on frozen features (Wu et al. 2018, section 3.4; Caron et al. 2021, DINO).
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct KnnOptions {
  int64_t k = 20;             // neighbours, at least 1; more than there are training features: all of them
  double temperature = 0.07;  // each votes with exp(cosine / temperature)
  bool plain = false;         // each votes with 1
};

// Each row of features [n, D] divided by its Euclidean length (at least 1e-12), f32.
Tensor normalized_rows(const Tensor& features);

// For each row of `queries` [m, D] the votes of its k nearest rows of `train` [n, D] (by inner product; ties by lower
// index) for the classes of their `labels` [n], which lie in [0, classes): [m, classes] f32, of which the greatest is
// the answer.  Both are normalised rows.
Tensor knn_votes(const Tensor& train, const std::vector<int64_t>& labels, const Tensor& queries, int64_t classes,
                 const KnnOptions& options = {});

}  // namespace vitrail::analysis
