// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// SIGReg, the regulariser of LeJEPA (Balestriero & LeCun 2025, arXiv 2511.08544): how far the rows of z are from draws
// of N(0, I).  For each direction a, the test of Epps & Pulley (1983) compares the characteristic function of the
// projections u = z a with that of N(0, 1):
//   B ∫ |φ_u(t) − e^{−t²/2}|² e^{−t²/2} dt,  by the trapezoidal rule at 17 points of [0, 3], doubled for t < 0.
// The loss is the mean over the views and directions.
// z [V, B, K], directions [K, S] with columns of length 1 (random_directions.h) → a scalar.  Differentiable in z.  The
// operation of ONNX is missing, because it is used in training only.  Source: SlicingUnivariateTest with EppsPulley of
// the package lejepa.  Throws Error for other shapes and without elements.
Tensor sigreg(const Tensor& z, const Tensor& directions);

}  // namespace vitrail::ops
