// SPDX-License-Identifier: Apache-2.0
#include "examples/extending/rms_norm.h"

#include "examples/extending/rms_norm_kernel.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/ops/dispatch.h"
#include "vitrail/ops/tokens.h"

namespace extending {
namespace {

using namespace vitrail;

// f32 runs the vector kernel, f64 the scalar reference.
void rms_norm_forward(const float* x, const float* gamma, double eps, float* y, int64_t rows, int64_t cols) {
  rms_norm_rows(x, gamma, static_cast<float>(eps), y, rows, cols);
}
void rms_norm_forward(const double* x, const double* gamma, double eps, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) scalar::rms_norm_row(x + r * cols, gamma, eps, y + r * cols, cols);
}

// With r = 1 / √(mean(x²) + ε) and g = grad ⊙ γ:  dx = r (g − x r² mean(g ⊙ x)),  dγ = Σ over rows of grad ⊙ x r.
template <class T>
void rms_norm_backward(const T* x, const T* gamma, T eps, const T* grad, T* grad_x, T* grad_gamma, int64_t rows,
                       int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, grad += cols, grad_x += cols) {
    T squares = 0, dot = 0;
    for (int64_t c = 0; c < cols; ++c) {
      squares += x[c] * x[c];
      dot += grad[c] * (gamma ? gamma[c] : 1) * x[c];
    }
    const T r = 1 / std::sqrt(squares / static_cast<T>(cols) + eps);
    const T shared = r * r * dot / static_cast<T>(cols);
    for (int64_t c = 0; c < cols; ++c) {
      grad_x[c] = r * (grad[c] * (gamma ? gamma[c] : 1) - x[c] * shared);
      if (grad_gamma) grad_gamma[c] += grad[c] * x[c] * r;
    }
  }
}

std::vector<Tensor> gradients(const Tensor& x, const Tensor& gamma, double eps, const Tensor& grad) {
  const Tensor grad_x = Tensor::empty(x.shape(), x.dtype());
  const Tensor grad_gamma = gamma.defined() ? Tensor::zeros(gamma.shape(), x.dtype()) : Tensor();
  ops::dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    rms_norm_backward(x.data<T>(), ops::data_or_null<T>(gamma), static_cast<T>(eps), grad.data<T>(), grad_x.data<T>(),
                      gamma.defined() ? grad_gamma.data<T>() : nullptr, ops::rows_of(x), x.size(-1));
  });
  return {grad_x, grad_gamma};
}

// x is on the meta device: the operation is recorded for a compiled program, and only its shape is known.
Tensor recorded(const Tensor& x, const Tensor& gamma, double eps) {
  const Tensor result = ops::symbolic_result(x.shape(), x.dtype());
  const int64_t rows = ops::rows_of(x), cols = x.size(-1);
  ops::CustomOperation step{.name = "rms_norm", .keeps_token_order = true};
  step.compute = [=](const float* const* inputs, float* const* outputs) {
    rms_norm_rows(inputs[0], inputs[1], static_cast<float>(eps), outputs[0], rows, cols);
  };
  ops::record(ops::OpKind::custom, {ops::contiguous(x), gamma}, {result},
              {.custom = std::make_shared<const ops::CustomOperation>(std::move(step))});
  return result;
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  if (x.rank() < 1) throw Error("rms_norm", "x [..., C]", "a scalar");
  if (gamma.defined() && !(gamma.shape() == Shape{x.size(-1)})) {
    throw Error("rms_norm", str("gamma [", x.size(-1), "] for x ", x.shape()), gamma.shape().to_string());
  }
  if (ops::symbolic({&x})) return recorded(x, gamma, eps);

  // 16-bit tensors are computed in f32; xc and gc are contiguous and not part of the autograd graph.
  const DType dtype = ops::compute_dtype(x, "rms_norm");
  const Tensor xc = ops::prepared(x, dtype), gc = ops::prepared(gamma, dtype);
  Tensor result = Tensor::empty(x.shape(), dtype);
  ops::dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    rms_norm_forward(xc.data<T>(), ops::data_or_null<T>(gc), eps, result.data<T>(), ops::rows_of(x), x.size(-1));
  });
  result = result.to(x.dtype());
  if (autograd::recording({x, gamma})) {
    autograd::record(result, "rms_norm", {x, gamma}, [xc, gc, eps](const Tensor& grad) {
      return gradients(xc, gc, eps, ops::prepared(grad, xc.dtype()));
    });
  }
  return result;
}

}  // namespace extending
