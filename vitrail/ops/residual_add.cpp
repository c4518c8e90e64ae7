// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/residual_add.h"

#include <algorithm>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

void check_residual(const Tensor& x, const Tensor& y, const Tensor& scale, const Tensor& keep) {
  if (!(x.shape() == y.shape())) {
    throw Error("residual_add", "two tensors of one shape", str(x.shape(), " and ", y.shape()));
  }
  if (scale.defined() && !(scale.shape() == Shape{x.size(-1)})) {
    throw Error("residual_add", str("a scale [", x.size(-1), "]"), scale.shape().to_string());
  }
  if (keep.defined() && !(keep.shape() == Shape{x.size(0)} && keep.dtype() == DType::f64)) {
    throw Error("residual_add", str("f64 keep factors [", x.size(0), "]"),
                str(name_of(keep.dtype()), " ", keep.shape()));
  }
}

// The factor of a sample; 1 if there is none.
template <class T>
T factor_of(const Tensor& keep, int64_t sample) {
  return keep.defined() ? static_cast<T>(keep.data<double>()[sample]) : T(1);
}

// Calls fn(offset of the row, factor of its sample) for the rows of x [B, ..., C], in parallel.
template <class T, class Fn>
void for_each_row(const Tensor& x, const Tensor& keep, Fn fn) {
  const int64_t channels = x.size(-1), rows = rows_of(x),
                per_sample = std::max<int64_t>(1, x.size(0) ? rows / x.size(0) : 0);
  parallel_for(0, rows, 1 + 16384 / (channels + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) fn(r * channels, factor_of<T>(keep, r / per_sample));
  });
}

// views: x, y, scale
template <class T>
void residual_add_forward(std::span<const View<const T>> in, const Tensor& keep, T* to) {
  const Tensor& x = *in[0].tensor;
  const T *xs = in[0].data, *ys = in[1].data, *s = in[2].data;
  const int64_t channels = x.size(-1);
  if constexpr (std::is_same_v<T, float>) {
    if (!keep.defined() && x.numel() > 0) {
      kernels::residual_layer_norm(xs, ys, s, nullptr, nullptr, 0, to, nullptr, x.numel() / channels, channels);
      return;
    }
  }
  for_each_row<T>(x, keep, [&](int64_t at, T k) {
    for (int64_t c = 0; c < channels; ++c) to[at + c] = xs[at + c] + k * (s ? s[c] : T(1)) * ys[at + c];
  });
}

// grad · factor of the sample.
template <class T>
Tensor scaled_by_keep(const Tensor& grad, const Tensor& keep) {
  if (!keep.defined()) return grad;
  Tensor result = Tensor::empty(grad.shape(), grad.dtype());
  const T* from = grad.data<T>();
  T* to = result.data<T>();
  for_each_row<T>(grad, keep, [&](int64_t at, T k) {
    for (int64_t c = 0; c < grad.size(-1); ++c) to[at + c] = k * from[at + c];
  });
  return result;
}

void sum_of_products(const float* a, const float* b, int64_t rows, int64_t cols, float* out) {
  kernels::sum_rows(a, b, rows, cols, out);
}
void sum_of_products(const double* a, const double* b, int64_t rows, int64_t cols, double* out) {
  kernels::scalar::sum_rows(a, b, rows, cols, out);
}

template <class T>
std::vector<Tensor> residual_add_backward(const Tensor& y, const Tensor& scale, const Tensor& keep,
                                          const Tensor& grad) {
  const Tensor branch_grad = scaled_by_keep<T>(grad, keep);
  if (!scale.defined()) return {grad, branch_grad, {}};
  const int64_t channels = y.size(-1);
  Tensor grad_y = Tensor::empty(y.shape(), y.dtype()), grad_scale = Tensor::empty(scale.shape(), y.dtype());
  const T *s = scale.data<T>(), *from = branch_grad.data<T>();
  T* to = grad_y.data<T>();
  for_each_row<T>(y, {}, [&](int64_t at, T) {
    for (int64_t c = 0; c < channels; ++c) to[at + c] = s[c] * from[at + c];
  });
  sum_of_products(from, y.data<T>(), rows_of(y), channels, grad_scale.data<T>());
  return {grad, grad_y, grad_scale};
}

}  // namespace

Tensor residual_add(const Tensor& x, const Tensor& y, const Tensor& scale, const Tensor& keep) {
  check_residual(x, y, scale, keep);
  if (keep.defined() && symbolic({x, y})) {
    throw Error("residual_add", "no stochastic depth in a recorded pass", "keep factors");
  }
  const Tensor factors = prepared(keep, DType::f64);
  return apply({.name = "residual_add",
                .kind = OpKind::residual_add,
                .shape = x.shape(),
                .kernel = [factors](auto in, auto out) { residual_add_forward(in, factors, out[0].data); },
                .gradient = [factors](const Tensors& in, const Tensors&) -> Backward {
                  const Tensor &y = in[1], &scale = in[2];
                  return [factors, y = scale.defined() ? y : Tensor(), scale, dtype = y.dtype()](const Tensor& grad) {
                    std::vector<Tensor> grads;
                    dispatch_compute(dtype, [&](auto tag) {
                      grads = residual_add_backward<decltype(tag)>(y, scale, factors, prepared(grad, dtype));
                    });
                    return grads;
                  };
                },
                .profile = "residual add",
                .keeps_token_order = true,
                .onnx =
                    [](OnnxValues& onnx, const auto& in, const auto&) {
                      OnnxGraph& graph = onnx.graph();
                      std::string branch = onnx.value_of(in[1]);
                      if (in[2].defined()) branch = graph.node("Mul", {branch, onnx.value_of(in[2])});
                      return graph.node("Add", {onnx.value_of(in[0]), branch});
                    }},
               {x, y, scale});
}

}  // namespace vitrail::ops
