// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the losses share: checked targets, parallel rows, the node of a gradient that is known already.
#include <functional>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/dispatch.h"
#include "vitrail/ops/loss.h"

namespace vitrail::ops {

// Targets of logits [B, C]: labels i64 [B], or a distribution [B, C]; the other one is undefined.
struct Targets {
  Tensor labels, soft;
};

// Throws Error unless logits are [B, C] with B and C above 0 and targets are one of the two forms, labels within [0,
// C). A distribution comes as contiguous elements of `dtype`.
Targets checked_targets(const Tensor& logits, const Tensor& targets, DType dtype, const char* where);

void check_logits(const Tensor& logits, const char* where);
void check_smoothing(double smoothing, const char* where);

// Σ of row(r) over the rows, in parallel; added in order, so that threads do not show.
double sum_of_rows(int64_t rows, int64_t cols, const std::function<double(int64_t)>& row);

// The loss as a scalar of `dtype`.  When the logits want a gradient, hangs a node on it that multiplies `gradient`,
// that of the loss in the logits, by what comes in.
Tensor loss_of(double value, const char* name, const Tensor& logits, const Tensor& gradient, DType dtype);

}  // namespace vitrail::ops
