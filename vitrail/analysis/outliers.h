// SPDX-License-Identifier: Apache-2.0
#pragma once
// Samples that are unlike all others, by their distance to their nearest neighbours (Ramaswamy, Rastogi & Shim 2000;
// for features of pretrained models Sun et al. 2022, "Out-of-Distribution Detection with Deep Nearest Neighbors").
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct NeighborDistance {
  double mean = 0;       // 1 − cosine similarity, over the k nearest other rows
  int64_t nearest = -1;  // the nearest other row; −1: there is none
};

// For each of the unit rows [n, D], its distance to the k nearest others, or to all if there are fewer.  Throws Error
// as nearest_rows.
std::vector<NeighborDistance> neighbor_distances(const Tensor& rows, int64_t k = 10);

// Tukey's upper outer fence: the third quartile plus three times the distance of the quartiles ("Exploratory Data
// Analysis", 1977, section 2C).  Quartiles are interpolated linearly.  Throws Error for no values.
double outer_fence(std::vector<double> values);

}  // namespace vitrail::analysis
