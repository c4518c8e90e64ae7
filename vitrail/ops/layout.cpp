// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/layout_internal.h"

#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

bool has_contiguous_last_axis(const Tensor& x) { return x.rank() == 0 || x.size(-1) == 1 || x.strides().back() == 1; }

bool has_evenly_spaced_rows(const Tensor& x) {
  int64_t next = -1;  // the stride that the axis before must have; none before the first axis of several rows
  for (int axis = x.rank() - 2; axis >= 0; --axis) {
    if (x.size(axis) == 1) continue;
    const int64_t stride = x.strides()[axis];
    if (next >= 0 && stride != next) return false;
    next = stride * x.size(axis);
  }
  return true;
}

}  // namespace

Tensor with_contiguous_last_axis(const Tensor& x) {
  return !x.defined() || has_contiguous_last_axis(x) ? x : contiguous(x);
}

Tensor with_evenly_spaced_rows(const Tensor& x) {
  return has_contiguous_last_axis(x) && has_evenly_spaced_rows(x) ? x : contiguous(x);
}

}  // namespace vitrail::ops
