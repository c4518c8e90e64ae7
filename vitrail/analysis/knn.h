// SPDX-License-Identifier: Apache-2.0
#pragma once
// k-nearest-neighbour classification on frozen features (Wu et al. 2018, section 3.4; Caron et al. 2021, DINO).
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct KnnOptions {
  int64_t k = 20;  // number of neighbours, at least 1; all training features if there are fewer
  // A neighbour votes with weight exp(cosine similarity / temperature), relative to that of the nearest: a small
  // temperature would give infinite weights otherwise.
  double temperature = 0.07;
  bool plain = false;  // a neighbour votes with weight 1 instead
};

// features [..., D] → f32 with vectors of unit L2 norm along the last axis.  Norms below 1e-12 count as 1e-12.
Tensor normalized_rows(const Tensor& features);

// For each row of `queries` [m, D], the votes of its k nearest rows of `train` [n, D] by cosine similarity; ties go to
// the lower index.  Both have unit rows.  labels [n] in [0, classes).  Returns votes [m, classes] f32; the prediction
// is the class with the most votes.  Throws Error for bad options or a wrong number of labels.
Tensor knn_votes(const Tensor& train, const std::vector<int64_t>& labels, const Tensor& queries, int64_t classes,
                 const KnnOptions& options = {});

}  // namespace vitrail::analysis
