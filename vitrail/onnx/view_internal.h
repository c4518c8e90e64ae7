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

// The outermost axis of a buffer.  batch: a view has all samples.  elements: callers choose their number, and a view
// may have one element, counted from the first.
enum class Outermost : uint8_t { batch, elements };

// An element of the buffer has its index in the mixed radix of the view's strides as coordinates.  Throws Error naming
// the view if it is no such slice, overlaps itself, or has a part of the batch.
// element: the size of an element of the outermost axis, or 0 for Outermost::batch.
ViewSteps steps_of(const Tensor& view, int64_t element = 0);

// The view of the buffer `value`, which an operator gave the shape `written`.
std::string apply_view(GraphBuilder& graph, const std::string& value, const Shape& written, const Tensor& view,
                       Outermost outermost = Outermost::batch);

}  // namespace vitrail::onnx
