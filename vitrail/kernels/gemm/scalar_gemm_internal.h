// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar references of this folder's kernels: one loop after another on one thread.
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/scalar_internal.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels::scalar {

// y(row, column) from the biased sum: the activation, then the residual.
inline float epilogue(const Epilogue& epilogue, float biased, int64_t row, int64_t column) {
  const Residual& residual = epilogue.residual;
  float y = activate(epilogue.activation, biased);
  if (residual.scale) y *= residual.scale[column];
  if (residual.data) y += residual.data[row * residual.ld + column];
  return y;
}

}  // namespace vitrail::kernels::scalar
