// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The terms of VISReg's regulariser (Wu et al. 2026, arXiv 2606.02572), scalars that pull the rows of each view towards
// draws of N(0, I).  With mean μ and standard deviation σ = ‖z − μ‖ / √B + 1e-6 of each column of a view:
struct VisregTerms {
  Tensor center;  // the mean of μ² (eq. 6)
  Tensor scale;   // the mean of (σ − 1)² (eq. 1)
  // The mean of (u_b − q_b)² (eq. 5): u_1 ≤ … ≤ u_B are the projections of the rows of (z − μ) / σ, without a gradient
  // of σ, on a direction; q_b = √2 erf⁻¹(2b / (B + 1) − 1) are quantiles of N(0, 1).
  Tensor shape;
};

// z [V, B, K], directions [K, S] with columns of length 1 (random_directions.h).  The means are over views, too.
// Differentiable in z.  Source: VISRegLoss of stable-pretraining.  Throws Error for other shapes and without elements.
VisregTerms visreg(const Tensor& z, const Tensor& directions);

}  // namespace vitrail::ops
