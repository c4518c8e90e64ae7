// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/linear.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/mixed_linear_internal.h"
#include "vitrail/ops/operation.h"
#include "vitrail/ops/precision.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  kernels::gemm(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, false, c, n);
}
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
  kernels::scalar::gemm(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, false, c, n);
}

// pre += bias (if it is not null), result = activation(pre).  result may be pre.
void finish(Activation activation, const float* bias, float* pre, float* result, int64_t rows, int64_t cols) {
  const bool plain = activation == Activation::none;
  if (bias) return kernels::add_bias(activation, bias, pre, plain ? nullptr : result, rows, cols);
  if (!plain) kernels::activate(activation, pre, result, rows * cols);
}
void finish(Activation activation, const double* bias, double* pre, double* result, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows * cols; ++i) {
    if (bias) pre[i] += bias[i % cols];
    result[i] = kernels::scalar::activate(activation, pre[i]);
  }
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.rank() != 2) throw Error("linear", "a weight [out, in]", "shape " + weight.shape().to_string());
  if (x.rank() < 1 || x.size(-1) != weight.size(1)) {
    throw Error("linear", str("x [..., ", weight.size(1), "] for a weight of shape ", weight.shape()),
                "shape " + x.shape().to_string());
  }
  if (bias.defined() && !(bias.shape() == Shape{weight.size(0)})) {
    throw Error("linear", str("a bias [", weight.size(0), "]"), "shape " + bias.shape().to_string());
  }
}

void sum_of_rows(const float* x, int64_t rows, int64_t cols, float* out) {
  kernels::sum_rows(x, nullptr, rows, cols, out);
}
void sum_of_rows(const double* x, int64_t rows, int64_t cols, double* out) {
  kernels::scalar::sum_rows<double>(x, nullptr, rows, cols, out);
}

// grad: the gradient of x Wᵀ + b, before the activation.
template <class T>
std::vector<Tensor> linear_backward(const Tensor& x, const Tensor& weight, const LinearGrads& needed,
                                    const Tensor& grad) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  Tensor grad_x, grad_weight, grad_bias;
  if (needed.x) {
    grad_x = Tensor::empty(x.shape(), x.dtype());
    gemm(false, false, rows, in, out, grad.data<T>(), weight.data<T>(), grad_x.data<T>());
  }
  if (needed.weight) {
    grad_weight = Tensor::empty(weight.shape(), x.dtype());
    gemm(true, false, out, in, rows, grad.data<T>(), x.data<T>(), grad_weight.data<T>());
  }
  if (needed.bias) {
    grad_bias = Tensor::empty({out}, x.dtype());
    sum_of_rows(grad.data<T>(), rows, out, grad_bias.data<T>());
  }
  return {grad_x, grad_weight, grad_bias};
}

// The gradients of x, weight and bias, as far as they are needed.  pre: before the activation; undefined without one.
Backward backward_of(const Tensor& x, const Tensor& weight, const Tensor& pre, Activation activation,
                     const LinearGrads& needed) {
  return [=](const Tensor& grad) {
    const Tensor g = activation_backward(activation, pre, prepared(grad, x.dtype()));
    std::vector<Tensor> grads;
    dispatch_compute(x.dtype(), [&](auto tag) { grads = linear_backward<decltype(tag)>(x, weight, needed, g); });
    return grads;
  };
}

// Mixed precision; see mixed_linear_internal.h.
Tensor linear_in_bf16(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                      const LinearGrads& needed) {
  const bool save = autograd::recording({x, weight, bias});
  const Tensor xc = prepared(x, DType::bf16), wc = prepared(weight, DType::bf16);
  MixedLinear forward = mixed_linear(xc, wc, prepared(bias, DType::f32), activation, save);
  if (save) {
    autograd::record(forward.result, "linear", {x, weight, bias},
                     [xc, wc, pre = forward.pre, activation, needed, x_dtype = x.dtype()](const Tensor& grad) {
                       return mixed_linear_backward(xc, wc, pre, activation, needed, x_dtype,
                                                    grad.detach().contiguous());
                     });
  }
  return forward.result;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  check(x, weight, bias);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = weight.size(0);
  const int64_t out = weight.size(0), in = weight.size(1), rows = rows_of(x);
  Operation operation{.name = "linear",
                      .kind = OpKind::linear,
                      .shape = shape,
                      .kernel =
                          [=](auto from, auto to) {
                            auto* const pre = to.back().data;
                            gemm(false, true, rows, out, in, from[0].data, from[1].data, pre);
                            finish(activation, from[2].data, pre, to[0].data, rows, out);
                          },
                      .layout = with_any_strides,
                      .flops = 2 * static_cast<double>(x.numel()) * static_cast<double>(out),
                      .activation = activation,
                      .keeps_token_order = true};
  if (symbolic({x})) return recorded(std::move(operation), {with_evenly_spaced_rows(x), weight, bias})[0];
  const LinearGrads needed{autograd::requires_grad(x), autograd::requires_grad(weight), autograd::requires_grad(bias)};
  if (gemm_dtype(x, "linear") == DType::bf16) return linear_in_bf16(x, weight, bias, activation, needed);
  const bool saves_pre = activation != Activation::none && autograd::recording({x, weight, bias});
  if (saves_pre) operation.further_results = {{shape}};
  operation.gradient = [=](const auto& from, const auto& to) {
    return backward_of(from[0], from[1], saves_pre ? to[1] : Tensor(), activation, needed);
  };
  return computed(operation, {x, weight, bias})[0];
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  bool fits = a.rank() >= 2 && a.rank() == b.rank() && a.size(-1) == b.size(-2);
  for (int i = 0; fits && i + 2 < a.rank(); ++i) fits = a.shape()[i] == b.shape()[i];
  if (!fits) throw Error("matmul", "[..., m, k] and [..., k, n]", str(a.shape(), " and ", b.shape()));
  shape[shape.rank() - 1] = b.size(-1);
  // A program reads b as it is if its transpose is contiguous.
  const int last = b.rank() - 1;
  const bool transposed = symbolic({a, b}) && !b.is_contiguous() && b.transpose(last - 1, last).is_contiguous();
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1), count = m * n == 0 ? 0 : shape.numel() / (m * n);
  return apply({.name = "matmul",
                .shape = shape,
                .kernel =
                    [=](auto in, auto out) {
                      for (int64_t i = 0; i < count; ++i) {
                        gemm(false, transposed, m, n, k, in[0].data + i * m * k, in[1].data + i * k * n,
                             out[0].data + i * m * n);
                      }
                    },
                .gradient = [last, for_a = autograd::requires_grad(a), for_b = autograd::requires_grad(b)](
                                const Tensors& in, const Tensors&) -> Backward {
                  return [a = in[0], b = in[1], last, for_a, for_b](const Tensor& grad) {
                    const Tensor g = prepared(grad, a.dtype());
                    return Tensors{for_a ? matmul(g, b.transpose(last - 1, last)) : Tensor(),
                                   for_b ? matmul(a.transpose(last - 1, last), g) : Tensor()};
                  };
                },
                .flops = 2.0 * static_cast<double>(count * m * n) * static_cast<double>(k),
                .onnx =
                    [=](OnnxValues& onnx, const auto& in, const auto&) {
                      const Tensor right = transposed ? in[1].transpose(last - 1, last) : in[1];
                      return onnx.graph().node("MatMul", {onnx.value_of(in[0]), onnx.value_of(right)});
                    }},
               {a, transposed ? b.transpose(last - 1, last) : b});
}

}  // namespace vitrail::ops
