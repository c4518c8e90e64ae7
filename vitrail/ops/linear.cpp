#include "vitrail/ops/linear.h"

#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/linear.h"
#include "vitrail/kernels/scalar.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  kernels::gemm(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, false, c, n);
}
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
  kernels::scalar::gemm(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, false, c, n);
}

void apply(Activation activation, const float* x, float* y, int64_t n) { kernels::activate(activation, x, y, n); }
void apply(Activation activation, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = kernels::scalar::activate(activation, x[i]);
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

// All extents but the last, as one.
int64_t rows_of(const Tensor& x) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.size(axis);
  return rows;
}

// pre [rows, out] = x Wᵀ + b
template <class T>
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& pre) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  T* y = pre.data<T>();
  gemm(false, true, rows, out, in, x.data<T>(), weight.data<T>(), y);
  const T* b = data_or_null<T>(bias);
  for (int64_t r = 0; b && r < rows; ++r) {
    for (int64_t c = 0; c < out; ++c) y[r * out + c] += b[c];
  }
}

// grad_pre = grad · activation'(pre)
template <class T>
Tensor activation_backward(Activation activation, const Tensor& pre, const Tensor& grad) {
  if (activation == Activation::none) return grad;
  Tensor result = Tensor::empty(grad.shape(), grad.dtype());
  for (int64_t i = 0; i < grad.numel(); ++i) {
    result.data<T>()[i] = grad.data<T>()[i] * kernels::scalar::activation_slope(activation, pre.data<T>()[i]);
  }
  return result;
}

template <class T>
std::vector<Tensor> linear_backward(const Tensor& x, const Tensor& weight, bool has_bias, const Tensor& grad) {
  const int64_t rows = rows_of(x), out = weight.size(0), in = weight.size(1);
  Tensor grad_x = Tensor::empty(x.shape(), x.dtype()), grad_weight = Tensor::empty(weight.shape(), x.dtype());
  gemm(false, false, rows, in, out, grad.data<T>(), weight.data<T>(), grad_x.data<T>());
  gemm(true, false, out, in, rows, grad.data<T>(), x.data<T>(), grad_weight.data<T>());
  Tensor grad_bias;
  if (has_bias) {
    grad_bias = Tensor::zeros({out}, x.dtype());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < out; ++c) grad_bias.data<T>()[c] += grad.data<T>()[r * out + c];
    }
  }
  return {grad_x, grad_weight, grad_bias};
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  check(x, weight, bias);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = weight.size(0);
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(shape, x.dtype());
    record(OpKind::linear, {x, weight, bias}, {result}, {.activation = activation});
    return result;
  }
  const DType dtype = compute_dtype(x, "linear");
  const Tensor xc = prepared(x, dtype), wc = prepared(weight, dtype), bc = prepared(bias, dtype);
  Tensor pre = Tensor::empty(shape, dtype), result = pre;
  const bool keep = autograd::recording({x, weight, bias});
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    linear_forward<T>(xc, wc, bc, pre);
    if (activation == Activation::none) return;
    if (keep) result = Tensor::empty(shape, dtype);  // the backward reads what came before the activation
    apply(activation, pre.data<T>(), result.data<T>(), pre.numel());
  });
  result = result.to(x.dtype());
  if (keep) {
    const Tensor kept = activation == Activation::none ? Tensor() : pre;
    autograd::record(result, "linear", {x, weight, bias},
                     [xc, wc, kept, activation, has_bias = bias.defined()](const Tensor& grad) {
                       const Tensor g = prepared(grad, xc.dtype());
                       std::vector<Tensor> grads;
                       dispatch_compute(xc.dtype(), [&](auto tag) {
                         using T = decltype(tag);
                         grads = linear_backward<T>(xc, wc, has_bias, activation_backward<T>(activation, kept, g));
                       });
                       return grads;
                     });
  }
  return result;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  autograd::require_no_grad("matmul", {a, b});
  Shape shape = a.shape();
  bool fits = a.rank() >= 2 && a.rank() == b.rank() && a.size(-1) == b.size(-2);
  for (int i = 0; fits && i + 2 < a.rank(); ++i) fits = a.shape()[i] == b.shape()[i];
  if (!fits) throw Error("matmul", "[..., m, k] and [..., k, n]", str(a.shape(), " and ", b.shape()));
  shape[shape.rank() - 1] = b.size(-1);
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
  return result.to(a.dtype());
}

}  // namespace vitrail::ops
