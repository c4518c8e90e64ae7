// SPDX-License-Identifier: Apache-2.0
#pragma once
// Principal component analysis of feature vectors, and the colours of patch features that DINOv2's paper shows (Oquab
// et al. 2024, section 7.5): the first three components as red, green and blue.
#include <optional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct Pca {
  Tensor mean;                    // [D]
  Tensor components;              // [k, D]: unit vectors, the direction of the largest variance first
  std::vector<double> variances;  // [k]: the variance along each, with the divisor n − 1
};

// The first `count` principal components of the rows [n, D].  The element of a component with the largest magnitude is
// positive, as in scikit-learn's PCA.  Deterministic.  Throws Error unless 1 ≤ count ≤ min(n − 1, D) and all values are
// finite.
Pca fit_pca(const Tensor& rows, int64_t count);

// (x − mean) · componentsᵀ: x [..., D] → [..., k].
Tensor pca_scores(const Pca& pca, const Tensor& x);

// Selects the patches that are shown.
struct Foreground {
  enum class Kind {
    all,
    first,     // the side of the first component's mean that has fewer patches at the borders of the grids
    threshold  // the first component, scaled to 0 to 1 over all images, exceeds `threshold`
  };
  Kind kind = Kind::all;
  double threshold = 0.5;
  bool invert = false;  // the other side
};

// Maps of one image.
struct PcaMaps {
  Tensor scores;  // [rows, columns, 3]: scores of the components, NaN in the background
  Tensor colors;  // [rows, columns, 3]: scores scaled to 0 to 1 over all images; 0 in the background
};

// One PCA over the patch features of all images, [rows, columns, D] each.  With a foreground, a first PCA over all
// patches selects it and a second one over the selected patches gives the colours.  Throws Error as fit_pca(), if no
// patch or fewer than four are selected, and if D differs between the images.
std::vector<PcaMaps> pca_maps(const std::vector<Tensor>& features, const Foreground& foreground = {});

}  // namespace vitrail::analysis
