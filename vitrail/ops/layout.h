// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layouts of inputs that kernels read.  Each function returns x, or a contiguous copy, which is recorded for a tensor
// on the meta device.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor contiguous(const Tensor& x);  // differentiable
Tensor with_contiguous_last_axis(const Tensor& x);
Tensor with_evenly_spaced_rows(const Tensor& x);  // for kernels with one stride of rows; the last axis is contiguous
inline Tensor with_any_strides(const Tensor& x) { return x; }

}  // namespace vitrail::ops
