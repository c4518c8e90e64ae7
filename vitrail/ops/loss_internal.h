// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common parts of losses: checked targets, sums over rows, and nodes whose gradient is computed in the forward pass.
#include <functional>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/dispatch.h"
#include "vitrail/ops/loss.h"

namespace vitrail::ops {

// Targets of logits [B, C]: either labels i64 [B] or distributions [B, C]; the other tensor is undefined.
struct Targets {
  Tensor labels, soft;
};

// Throws Error unless logits are [B, C] with B, C > 0 and targets have one of the two forms, with labels in [0, C) or
// `ignored`.  Distributions are converted to contiguous `dtype`.
Targets checked_targets(const Tensor& logits, const Tensor& targets, DType dtype, const char* where,
                        std::optional<int64_t> ignored = {});

void check_logits(const Tensor& logits, const char* where);
void check_smoothing(double smoothing, const char* where);

// Σ_r row(r).  Rows are computed in parallel and summed in order, so the result does not depend on the threads.
double sum_of_rows(int64_t rows, int64_t cols, const std::function<double(int64_t)>& row);

// The loss as a scalar of `dtype`.  If the logits require a gradient, its node multiplies `gradient`, the derivative of
// the loss with respect to the logits, by the incoming gradient.
Tensor loss_of(double value, const char* name, const Tensor& logits, const Tensor& gradient, DType dtype);

}  // namespace vitrail::ops
