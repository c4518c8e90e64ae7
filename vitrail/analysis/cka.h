// SPDX-License-Identifier: Apache-2.0
#pragma once
// Centred kernel alignment: how similar the representations of layers are (Kornblith et al. 2019, "Similarity of neural
// network representations revisited").
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// Linear CKA with the unbiased estimator of HSIC, in batches (Nguyen et al. 2021, "Do wide and deep networks learn the
// same things?", eq. 2 and 3; Song et al. 2012): for the layers X and Y of all batches
//   Σ HSIC(XXᵀ, YYᵀ) / √(Σ HSIC(XXᵀ, XXᵀ) · Σ HSIC(YYᵀ, YYᵀ)).
// 1: equal up to rotation, scale and offset.  About 0: unrelated; noise may make it negative.
class LinearCka {
 public:
  // The same n images in each layer, [n, ...] in f32; all values of an image are its features.  Layers of several
  // models may follow each other.  Throws Error for fewer than 4 images, another number of images between layers, and
  // another number of layers than before.
  void add(const std::vector<Tensor>& layers);

  // [layers, layers], symmetric, with 1 on the diagonal; NaN for a layer that does not tell the images apart.  Throws
  // Error without a batch.
  Tensor similarities() const;

 private:
  int64_t layers_ = 0;
  std::vector<double> hsic_;  // [layers, layers], sums over batches
};

}  // namespace vitrail::analysis
