// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of recorded operations in a layout that the steps of a compiled program read.  Each function returns x, or a
// copy, which is recorded for a symbolic x.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor with_contiguous_last_axis(const Tensor& x);  // undefined stays undefined
// For kernels that take one stride of rows: the last axis is contiguous, too.
Tensor with_evenly_spaced_rows(const Tensor& x);

}  // namespace vitrail::ops
