// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/activation.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/layout_internal.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;

// x: rows of [gate | value].  grad: the gradient of silu(gate) · value.  grad_x: rows of both gradients.
template <class T>
void silu_gate_backward(const T* x, const T* grad, T* grad_x, int64_t rows, int64_t cols) {
  parallel_for(0, rows, 1 + 4096 / (cols + 1), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const T *gate = x + r * 2 * cols, *value = gate + cols, *g = grad + r * cols;
      T *to_gate = grad_x + r * 2 * cols, *to_value = to_gate + cols;
      for (int64_t c = 0; c < cols; ++c) {
        to_gate[c] = g[c] * value[c] * kernels::scalar::activation_derivative(Activation::silu, gate[c]);
        to_value[c] = g[c] * kernels::scalar::activate(Activation::silu, gate[c]);
      }
    }
  });
}

}  // namespace

Tensor activation(const Tensor& x, Activation kind) {
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(x.shape(), x.dtype());
    record(OpKind::activation, {contiguous(x)}, {result}, {.activation = kind});
    return result;
  }
  const DType dtype = compute_dtype(x, "activation");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(x.shape(), dtype);
  if (dtype == DType::f32) {
    kernels::activate(kind, xc.data<float>(), result.data<float>(), xc.numel());
  } else {
    for (int64_t i = 0; i < xc.numel(); ++i) {
      result.data<double>()[i] = kernels::scalar::activate(kind, xc.data<double>()[i]);
    }
  }
  result = result.to(x.dtype());
  if (autograd::recording({x})) {
    autograd::record(result, "activation", {x}, [xc, kind](const Tensor& grad) {
      return std::vector<Tensor>{activation_backward(kind, xc, prepared(grad, xc.dtype()))};
    });
  }
  return result;
}

Tensor activation_backward(Activation kind, const Tensor& x, const Tensor& grad) {
  if (kind == Activation::none) return grad;
  const Tensor result = Tensor::empty(grad.shape(), grad.dtype());
  if (grad.dtype() == DType::f32) {
    kernels::activation_backward(kind, x.data<float>(), grad.data<float>(), result.data<float>(), grad.numel());
  } else {
    for (int64_t i = 0; i < grad.numel(); ++i) {
      result.data<double>()[i] =
          grad.data<double>()[i] * kernels::scalar::activation_derivative(kind, x.data<double>()[i]);
    }
  }
  return result;
}

Tensor silu_gate(const Tensor& x) {
  if (x.rank() < 1 || x.size(-1) % 2 != 0) throw Error("silu_gate", "an even last extent", x.shape().to_string());
  Shape shape = x.shape();
  const int64_t cols = shape[shape.rank() - 1] /= 2;
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(shape, x.dtype());
    record(OpKind::silu_gate, {with_evenly_spaced_rows(x)}, {result});
    return result;
  }
  const DType dtype = compute_dtype(x, "silu_gate");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(shape, dtype);
  const int64_t rows = rows_of(result);
  if (dtype == DType::f32) {
    kernels::silu_gate(xc.data<float>(), 2 * cols, result.data<float>(), cols, rows, cols);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      kernels::scalar::silu_gate(xc.data<double>() + r * 2 * cols, result.data<double>() + r * cols, cols);
    }
  }
  result = result.to(x.dtype());
  if (autograd::recording({x})) {
    autograd::record(result, "silu_gate", {x}, [xc, rows, cols](const Tensor& grad) {
      const Tensor g = prepared(grad, xc.dtype()), grad_x = Tensor::empty(xc.shape(), xc.dtype());
      dispatch_compute(xc.dtype(), [&](auto tag) {
        using T = decltype(tag);
        silu_gate_backward(xc.data<T>(), g.data<T>(), grad_x.data<T>(), rows, cols);
      });
      return std::vector<Tensor>{grad_x};
    });
  }
  return result;
}

}  // namespace vitrail::ops
