// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {

// The rows [R, D] of all processes, which have equally many, as a run in one process has them.  `views`: the rows are v
// · R / views + i for view v of image i.  Each process computes the loss of all rows; the gradient is that of the mean
// of these losses.
Tensor gather_rows(const Tensor& rows, int64_t views, const ProcessGroup& group);

}  // namespace vitrail::train
