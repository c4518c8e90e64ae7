// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strided views as operators: a graph has no strides.
#include <string>

#include "vitrail/onnx/graph_builder_internal.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::onnx {

// A recorded pass has this batch size: a prime, so that the batch is distinguished from other extents.
constexpr int64_t kRecordedBatch = 13;

// What gives a view of a contiguous buffer: Reshape to `digits`, Slice, Transpose by `order`, Reshape to `shape`, and
// Expand to `expanded` unless that is empty.  -1 stands for the extent with the batch.
struct ViewSteps {
  Ints digits;
  Ints axes, starts, ends;  // the axes of `digits` that are sliced
  Ints order;
  Ints shape, expanded;
};

// An element of the buffer has its index in the mixed radix of the view's strides as coordinates.  The view must have
// the whole batch.  Throws Error naming the view if it is no such slice, or overlaps itself.
ViewSteps steps_of(const Tensor& view);

// The view of the buffer `value`, which an operator gave the shape `written`.
std::string apply_view(GraphBuilder& graph, const std::string& value, const Shape& written, const Tensor& view);

}  // namespace vitrail::onnx
