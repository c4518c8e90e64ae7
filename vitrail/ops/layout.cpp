// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/layout.h"

#include "vitrail/ops/operation.h"
#include "vitrail/ops/row_loops_internal.h"

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

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous() || !symbolic({x})) return x.contiguous();
  Operation copy{.name = "copy",
                 .shape = x.shape(),
                 .kernel = [](auto in, auto out) { copy_rows(in[0].data, *in[0].tensor, out[0].data, *out[0].tensor); },
                 .layout = with_any_strides,
                 .keeps_token_order = true,
                 .plain_loop = true,
                 .onnx = [](OnnxValues& onnx, const auto& in, const auto&) { return onnx.value_of(in[0]); }};
  return recorded(std::move(copy), {x})[0];
}

Tensor with_contiguous_last_axis(const Tensor& x) { return has_contiguous_last_axis(x) ? x : contiguous(x); }

Tensor with_evenly_spaced_rows(const Tensor& x) {
  return has_contiguous_last_axis(x) && has_evenly_spaced_rows(x) ? x : contiguous(x);
}

}  // namespace vitrail::ops
