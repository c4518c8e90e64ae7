// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/onnx/view_internal.h"

namespace vitrail::onnx {
namespace {

[[noreturn]] void refuse(const Tensor& view, const char* reason) {
  throw Error("ONNX", "views that slices, reshapes and transpositions of the whole batch express",
              str("a view ", view.shape(), " of strides ", view.strides(), " at ", view.offset(), ": ", reason));
}

int64_t elements_of(const Tensor& view) {
  return static_cast<int64_t>(view.storage()->bytes() / size_of(view.dtype()));
}

// The axes of more than one element that are not repeated, by stride, the largest first.
std::vector<int> axes_by_stride(const Tensor& view) {
  std::vector<int> axes;
  for (int i = 0; i < view.rank(); ++i) {
    if (view.size(i) > 1 && view.strides()[i] != 0) axes.push_back(i);
  }
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return view.strides()[a] > view.strides()[b]; });
  return axes;
}

bool is_whole_buffer(const Tensor& view) {
  return view.is_contiguous() && view.offset() == 0 && view.numel() == elements_of(view);
}

// `shape` with -1 for the outermost extent of more than one element, which has the batch.
Ints with_batch(const Shape& shape) {
  Ints result(shape.begin(), shape.end());
  const auto outermost = std::find_if(result.begin(), result.end(), [](int64_t extent) { return extent > 1; });
  if (outermost != result.end()) *outermost = -1;
  return result;
}

// What gives a view that is one element of the outermost axis.
ViewSteps element_steps(const Tensor& view, int64_t element) {
  const int64_t at = view.offset() / element;
  return {.digits = {-1, element},
          .axes = {0},
          .starts = {at},
          .ends = {at + 1},
          .order = {0, 1},
          .shape = Ints(view.shape().begin(), view.shape().end()),
          .expanded = {}};
}

// The size of an element of the outermost axis of more than one.
int64_t element_of(const Shape& shape) {
  const auto outermost = std::find_if(shape.begin(), shape.end(), [](int64_t extent) { return extent > 1; });
  return outermost == shape.end() ? 0 : shape.numel() / *outermost;
}

}  // namespace

ViewSteps steps_of(const Tensor& view, int64_t element) {
  const bool is_element =
      element > 0 && view.is_contiguous() && view.numel() == element && view.offset() % element == 0;
  if (is_element) return element_steps(view, element);
  const std::vector<int> axes = axes_by_stride(view);
  if (axes.empty()) refuse(view, "it has no batch");
  ViewSteps steps;
  Ints position(axes.size());
  int64_t outer = elements_of(view);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t stride = view.strides()[axes[i]], size = view.size(axes[i]);
    if (stride < 0 || outer % stride != 0 || outer == stride) refuse(view, "strides do not divide each other");
    const int64_t extent = outer / stride, start = view.offset() / stride % extent;
    if (start + size > extent) refuse(view, "it overlaps itself");
    if (i == 0 && size != extent) refuse(view, "it has a part of the batch");
    steps.digits.push_back(i == 0 ? -1 : extent);
    if (size != extent) {
      steps.axes.push_back(static_cast<int64_t>(i));
      steps.starts.push_back(start);
      steps.ends.push_back(start + size);
    }
    outer = stride;
  }
  if (outer > 1) {  // what one element of the innermost axis spans
    steps.axes.push_back(static_cast<int64_t>(axes.size()));
    steps.starts.push_back(view.offset() % outer);
    steps.ends.push_back(view.offset() % outer + 1);
    steps.digits.push_back(outer);
  }
  steps.order.resize(steps.digits.size());
  std::iota(steps.order.begin(), steps.order.end(), 0);
  std::stable_sort(steps.order.begin(), steps.order.begin() + static_cast<int64_t>(axes.size()),
                   [&](int64_t a, int64_t b) { return axes[a] < axes[b]; });
  bool repeated = false;
  for (int i = 0; i < view.rank(); ++i) {
    const bool repeats = view.size(i) > 1 && view.strides()[i] == 0;
    repeated = repeated || repeats;
    steps.shape.push_back(i == axes[0] ? -1 : repeats ? 1 : view.size(i));
    steps.expanded.push_back(repeats ? view.size(i) : 1);
  }
  if (!repeated) steps.expanded.clear();
  return steps;
}

std::string apply_view(GraphBuilder& graph, const std::string& value, const Shape& written, const Tensor& view,
                       Outermost outermost) {
  const Ints before = with_batch(written);
  if (is_whole_buffer(view)) return view.shape() == written ? value : graph.reshape(value, with_batch(view.shape()));
  const ViewSteps steps = steps_of(view, outermost == Outermost::elements ? element_of(written) : 0);
  std::string x = steps.digits == before ? value : graph.reshape(value, steps.digits);
  Ints extents = steps.digits;
  if (!steps.axes.empty()) x = graph.slice(x, steps.axes, steps.starts, steps.ends);
  for (size_t i = 0; i < steps.axes.size(); ++i) extents[steps.axes[i]] = steps.ends[i] - steps.starts[i];
  if (!std::is_sorted(steps.order.begin(), steps.order.end())) x = graph.transpose(x, steps.order);
  Ints now;
  for (const int64_t axis : steps.order) now.push_back(extents[axis]);
  if (now != steps.shape) x = graph.reshape(x, steps.shape);
  return steps.expanded.empty() ? x : graph.node("Expand", {x, graph.constant(steps.expanded)});
}

}  // namespace vitrail::onnx
