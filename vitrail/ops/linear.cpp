// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/linear.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/custom_internal.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/layout_internal.h"
#include "vitrail/ops/mixed_linear_internal.h"
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

// pre [rows, out] = x Wᵀ + b, result = activation(pre).  result may be pre.
template <class T>
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation, const Tensor& pre,
                    const Tensor& result) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  gemm(false, true, rows, out, in, x.data<T>(), weight.data<T>(), pre.data<T>());
  finish(activation, data_or_null<T>(bias), pre.data<T>(), result.data<T>(), rows, out);
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

// b is read as it is if its transpose is contiguous.  The attribute axis is the one of b that is contracted.
Tensor recorded_matmul(const Tensor& a, const Tensor& b, const Shape& shape) {
  const int last = b.rank() - 1;
  const bool transposed = !b.is_contiguous() && b.transpose(last - 1, last).is_contiguous();
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1), count = m * n == 0 ? 0 : shape.numel() / (m * n);
  return recorded_custom("matmul", {a, transposed ? b.transpose(last - 1, last) : b}, shape,
                         [=](const float* const* in, float* const* out) {
                           for (int64_t i = 0; i < count; ++i) {
                             kernels::gemm(false, transposed, m, n, k, in[0] + i * m * k, k, in[1] + i * k * n,
                                           transposed ? k : n, false, out[0] + i * m * n, n);
                           }
                         },
                         2.0 * static_cast<double>(count * m * n) * static_cast<double>(k), {},
                         {.axis = transposed ? last : last - 1});
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  check(x, weight, bias);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = weight.size(0);
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(shape, x.dtype());
    record(OpKind::linear, {with_evenly_spaced_rows(x), weight, bias}, {result}, {.activation = activation});
    return result;
  }
  const LinearGrads needed{autograd::requires_grad(x), autograd::requires_grad(weight), autograd::requires_grad(bias)};
  const bool save = autograd::recording({x, weight, bias});  // the backward pass needs the input of the activation
  if (gemm_dtype(x, "linear") == DType::bf16) {
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
  const DType dtype = compute_dtype(x, "linear");
  const Tensor xc = prepared(x, dtype), wc = prepared(weight, dtype), bc = prepared(bias, dtype);
  const Tensor pre = Tensor::empty(shape, dtype);
  Tensor result = save && activation != Activation::none ? Tensor::empty(shape, dtype) : pre;
  dispatch_compute(dtype, [&](auto tag) { linear_forward<decltype(tag)>(xc, wc, bc, activation, pre, result); });
  result = result.to(x.dtype());
  if (save) {
    const Tensor saved = activation == Activation::none ? Tensor() : pre;
    autograd::record(
        result, "linear", {x, weight, bias}, [xc, wc, saved, activation, needed, dtype](const Tensor& grad) {
          const Tensor g = activation_backward(activation, saved, prepared(grad, dtype));
          std::vector<Tensor> grads;
          dispatch_compute(dtype, [&](auto tag) { grads = linear_backward<decltype(tag)>(xc, wc, needed, g); });
          return grads;
        });
  }
  return result;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  bool fits = a.rank() >= 2 && a.rank() == b.rank() && a.size(-1) == b.size(-2);
  for (int i = 0; fits && i + 2 < a.rank(); ++i) fits = a.shape()[i] == b.shape()[i];
  if (!fits) throw Error("matmul", "[..., m, k] and [..., k, n]", str(a.shape(), " and ", b.shape()));
  shape[shape.rank() - 1] = b.size(-1);
  if (symbolic({&a, &b})) return recorded_matmul(a, b, shape);
  const DType dtype = compute_dtype(a, "matmul");
  const Tensor ac = prepared(a, dtype), bc = prepared(b, dtype);
  Tensor result = Tensor::empty(shape, dtype);
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1), count = m * n == 0 ? 0 : result.numel() / (m * n);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < count; ++i) {
      gemm(false, false, m, n, k, ac.data<T>() + i * m * k, bc.data<T>() + i * k * n, result.data<T>() + i * m * n);
    }
  });
  result = result.to(a.dtype());
  if (autograd::recording({a, b})) {
    autograd::record(result, "matmul", {a, b}, [ac, bc](const Tensor& grad) {
      const Tensor g = prepared(grad, ac.dtype());
      const int last = ac.rank() - 1;
      return std::vector<Tensor>{matmul(g, bc.transpose(last - 1, last)), matmul(ac.transpose(last - 1, last), g)};
    });
  }
  return result;
}

}  // namespace vitrail::ops
