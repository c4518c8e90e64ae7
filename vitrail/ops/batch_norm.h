// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Batch normalisation by the statistics of the batch (Ioffe & Szegedy 2015, algorithm 1), as torch.nn.BatchNorm1d in
// training mode, without running averages: γ · (x − mean) / √(variance + ε) + β with mean and biased variance of each
// column.  x [B, D] with B ≥ 2; gamma, beta [D] or undefined (1 and 0).  Differentiable.  For layers that are used in
// training only: it has no operator of ONNX.  Throws Error for other shapes.
Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);

}  // namespace vitrail::ops
