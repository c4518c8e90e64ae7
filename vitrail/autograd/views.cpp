// SPDX-License-Identifier: Apache-2.0
// Gradients of Tensor's own methods: views, and copies of another dtype or layout.
#include "vitrail/autograd/variable.h"

namespace vitrail::autograd {
namespace {

// The layout of a tensor in its storage.
struct Layout {
  Shape shape, strides;
  int64_t offset = 0;

  static Layout of(const Tensor& tensor) { return {tensor.shape(), tensor.strides(), tensor.offset()}; }
  Tensor over(const Tensor& memory, int64_t origin) const {
    return Tensor(memory.storage(), memory.dtype(), shape, strides, offset - origin);
  }
  // The number of elements from the first to the last one that it addresses.
  int64_t span() const {
    int64_t last = 0;
    for (int i = 0; i < shape.rank(); ++i) last += (shape[i] - 1) * strides[i];
    return shape.numel() == 0 ? 0 : last + 1;
  }
};

bool repeats(const Layout& layout, int axis) { return layout.strides[axis] == 0 && layout.shape[axis] > 1; }

// Sums the gradient over expanded axes, which then have the extent 1.
Tensor without_repeats(const Tensor& grad, Layout& layout) {
  Tensor result = grad;
  for (int axis = 0; axis < layout.shape.rank(); ++axis) {
    if (!repeats(layout, axis)) continue;
    Tensor sum = result.narrow(axis, 0, 1).to(DType::f64).clone();
    for (int64_t i = 1; i < layout.shape[axis]; ++i) {
      const Tensor part = result.narrow(axis, i, 1).to(DType::f64).contiguous();
      for (int64_t at = 0; at < sum.numel(); ++at) sum.data<double>()[at] += part.data<double>()[at];
    }
    result = sum.to(grad.dtype());
    layout.shape[axis] = 1;
  }
  return result;
}

// Maps the gradient of `view` to that of `source`: zeros for elements that the view does not contain.
Tensor scatter(const Tensor& grad, const Layout& source, Layout view) {
  const Tensor memory = Tensor::zeros({source.span()}, grad.dtype());
  const Tensor reduced = without_repeats(grad, view);
  view.over(memory, source.offset).copy_(reduced);
  // If positions of the source share an element, the first gets the whole gradient: the gradient of expand() sums them.
  Layout once = source;
  bool shared = false;
  for (int axis = 0; axis < source.shape.rank(); ++axis) {
    if (!repeats(source, axis)) continue;
    once.shape[axis] = 1;
    shared = true;
  }
  if (!shared) return source.over(memory, source.offset).contiguous();
  Tensor result = Tensor::zeros(source.shape, grad.dtype());
  Tensor first = result;
  for (int axis = 0; axis < source.shape.rank(); ++axis) first = first.narrow(axis, 0, once.shape[axis]);
  first.copy_(once.over(memory, source.offset));
  return result;
}

}  // namespace

void Variable::derived(const Tensor& source, Tensor& result) const {
  if (!recording({source})) return;
  if (result.storage() != source.storage()) {
    record(result, "copy", {source},
           [dtype = source.dtype()](const Tensor& grad) { return std::vector<Tensor>{grad.to(dtype)}; });
  } else if (result.is_contiguous() && source.is_contiguous() && result.numel() == source.numel()) {
    record(result, "view", {source},
           [shape = source.shape()](const Tensor& grad) { return std::vector<Tensor>{grad.contiguous().view(shape)}; });
  } else {
    record(result, "view", {source}, [from = Layout::of(source), to = Layout::of(result)](const Tensor& grad) {
      return std::vector<Tensor>{scatter(grad, from, to)};
    });
  }
}

}  // namespace vitrail::autograd
