// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/tokens.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

int wrap(int axis, const Tensor& x, const char* where) {
  const int wrapped = axis < 0 ? axis + x.rank() : axis;
  if (wrapped < 0 || wrapped >= x.rank()) throw Error(where, str("an axis of ", x.shape()), str(axis));
  return wrapped;
}

Shape joined_shape(const std::vector<Tensor>& parts, int axis) {
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape others = part.shape();
    if (part.rank() == shape.rank()) others[axis] = shape[axis];
    if (!(others == shape)) {
      throw Error("cat", str("shapes that agree but for axis ", axis), str(parts[0].shape(), " and ", part.shape()));
    }
    shape[axis] += part.shape()[axis];
  }
  return shape;
}

std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<int64_t>& extents, int axis) {
  std::vector<Tensor> grads;
  int64_t at = 0;
  for (const int64_t extent : extents) {
    grads.push_back(grad.narrow(axis, at, extent));
    at += extent;
  }
  return grads;
}

// x as [outer, length, inner], with `length` the axis.  The last axis is contiguous; so is x, unless it is [B, N, C]
// with the axis 1.
struct Extents {
  int64_t outer = 1, length = 1, inner = 1;
  int64_t outer_stride, length_stride;

  Extents(const Tensor& x, int axis) {
    for (int i = 0; i < x.rank(); ++i) (i < axis ? outer : i == axis ? length : inner) *= x.shape()[i];
    const bool rows = x.rank() == 3 && axis == 1;
    outer_stride = rows ? x.strides()[0] : length * inner;
    length_stride = rows ? x.strides()[1] : inner;
  }
};

// from [outer, length, inner] → to [outer, inner]
template <class T>
void mean_forward(const T* from, T* to, const Extents& n) {
  parallel_for(0, n.outer, 1 + 16384 / (n.length * n.inner + 1), [&](int64_t first, int64_t last) {
    for (int64_t o = first; o < last; ++o) {
      T* const sums = to + o * n.inner;
      std::fill(sums, sums + n.inner, T(0));
      for (int64_t l = 0; l < n.length; ++l) {
        const T* const row = from + o * n.outer_stride + l * n.length_stride;
        for (int64_t i = 0; i < n.inner; ++i) sums[i] += row[i];
      }
      for (int64_t i = 0; i < n.inner; ++i) sums[i] /= T(n.length);
    }
  });
}

template <class T>
void mean_backward(const T* grad, T* to, const Extents& n) {
  parallel_for(0, n.outer, 1 + 16384 / (n.length * n.inner + 1), [&](int64_t first, int64_t last) {
    for (int64_t o = first; o < last; ++o) {
      for (int64_t l = 0; l < n.length; ++l) {
        for (int64_t i = 0; i < n.inner; ++i)
          to[(o * n.length + l) * n.inner + i] = grad[o * n.inner + i] / T(n.length);
      }
    }
  });
}

}  // namespace

Tensor cat(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw Error("cat", "at least one tensor", "none");
  axis = wrap(axis, parts[0], "cat");
  const Shape shape = joined_shape(parts, axis);
  if (symbolic(parts)) {
    Operation operation{.name = "cat",
                        .kind = OpKind::cat,
                        .shape = shape,
                        .layout = with_any_strides,
                        .axis = axis,
                        .text = str("cat axis=", axis),
                        .plain_loop = true};
    return recorded(std::move(operation), parts)[0];
  }
  Tensor result = Tensor::empty(shape, parts[0].dtype());
  std::vector<int64_t> extents;
  int64_t at = 0;
  for (const Tensor& part : parts) {
    extents.push_back(part.shape()[axis]);
    result.narrow(axis, at, extents.back()).copy_(part);
    at += extents.back();
  }
  if (autograd::recording(parts)) {
    autograd::record(result, "cat", parts,
                     [extents, axis](const Tensor& grad) { return cat_backward(grad, extents, axis); });
  }
  return result;
}

Tensor mean(const Tensor& x, int axis) {
  axis = wrap(axis, x, "mean");
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
  }
  return apply(
      {.name = "mean",
       .shape = shape,
       .kernel = [axis](auto in, auto out) { mean_forward(in[0].data, out[0].data, Extents(*in[0].tensor, axis)); },
       .gradient =
           [axis](const auto& in, const auto&) {
             return backward_kernel(in, {}, [axis](auto from, auto grads) {
               mean_backward(from[0].data, grads[0].data, Extents(*grads[0].tensor, axis));
             });
           },
       .layout = x.rank() == 3 && axis == 1 ? with_contiguous_last_axis : contiguous,
       .plain_loop = true,
       .onnx = [axis](OnnxValues& onnx, const auto& in,
                      const auto&) { return onnx.mean(onnx.value_of(in[0]), axis, false); }},
      {x});
}

Tensor gather_tokens(const Tensor& x, const std::vector<std::vector<int64_t>>& indices) {
  if (x.rank() != 3 || static_cast<int64_t>(indices.size()) != x.size(0) || indices.empty()) {
    throw Error("gather_tokens", str("x [", indices.size(), ", N, C]"), x.shape().to_string());
  }
  const auto count = static_cast<int64_t>(indices[0].size());
  Tensor result = Tensor::empty({x.size(0), count, x.size(2)}, x.dtype());
  for (int64_t b = 0; b < x.size(0); ++b) {
    if (static_cast<int64_t>(indices[b].size()) != count) {
      throw Error("gather_tokens", str(count, " tokens of each sample"), str(indices[b].size()));
    }
    const Tensor from = x.detach().select(0, b), to = result.select(0, b);
    for (int64_t i = 0; i < count; ++i) to.select(0, i).copy_(from.select(0, indices[b][i]));
  }
  if (autograd::recording({x})) {
    autograd::record(result, "gather_tokens", {x}, [indices, shape = x.shape()](const Tensor& grad) {
      const DType dtype = compute_dtype(grad, "gather_tokens");
      const Tensor g = prepared(grad, dtype), grad_x = Tensor::zeros(shape, dtype);
      const int64_t tokens = shape[1], cols = shape[2], rows = g.size(1);
      dispatch_compute(dtype, [&](auto tag) {
        using T = decltype(tag);
        for (int64_t at = 0; at < shape[0] * rows; ++at) {
          T* const to = grad_x.data<T>() + (at / rows * tokens + indices[at / rows][at % rows]) * cols;
          for (int64_t c = 0; c < cols; ++c) to[c] += g.data<T>()[at * cols + c];
        }
      });
      return std::vector<Tensor>{grad_x};
    });
  }
  return result;
}

}  // namespace vitrail::ops
