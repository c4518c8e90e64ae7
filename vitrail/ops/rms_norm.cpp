// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/rms_norm.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/rowwise/rms_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/layout_internal.h"

namespace vitrail::ops {
namespace {

void rms_norm_forward(const float* x, const float* gamma, double eps, float* y, int64_t rows, int64_t cols) {
  kernels::rms_norm(x, cols, gamma, static_cast<float>(eps), y, cols, rows, cols);
}
void rms_norm_forward(const double* x, const double* gamma, double eps, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) kernels::scalar::rms_norm_row(x + r * cols, gamma, eps, y + r * cols, cols);
}

void rms_norm_backward(const float* x, const float* gamma, double eps, const float* grad, int64_t rows, int64_t cols,
                       float* grad_x, float* grad_gamma) {
  kernels::rms_norm_backward(x, gamma, static_cast<float>(eps), grad, rows, cols, grad_x, grad_gamma);
}
void rms_norm_backward(const double* x, const double* gamma, double eps, const double* grad, int64_t rows, int64_t cols,
                       double* grad_x, double* grad_gamma) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * cols;
    kernels::scalar::rms_norm_backward_row(x + at, gamma, eps, grad + at, cols, grad_x + at, grad_gamma);
  }
}

std::vector<Tensor> gradients(const Tensor& x, const Tensor& gamma, double eps, const Tensor& grad) {
  const int64_t cols = x.size(-1);
  const Tensor grad_x = Tensor::empty(x.shape(), x.dtype());
  const Tensor grad_gamma = gamma.defined() ? Tensor::zeros({cols}, x.dtype()) : Tensor();
  dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    rms_norm_backward(x.data<T>(), data_or_null<T>(gamma), eps, grad.data<T>(), rows_of(x), cols, grad_x.data<T>(),
                      grad_gamma.defined() ? grad_gamma.data<T>() : nullptr);
  });
  return {grad_x, grad_gamma};
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  if (x.rank() < 1) throw Error("rms_norm", "x [..., C]", "a scalar");
  if (gamma.defined() && !(gamma.shape() == Shape{x.size(-1)})) {
    throw Error("rms_norm", str("gamma [", x.size(-1), "] for x ", x.shape()), gamma.shape().to_string());
  }
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(x.shape(), x.dtype());
    record(OpKind::rms_norm, {with_evenly_spaced_rows(x), gamma}, {result}, {.eps = eps});
    return result;
  }
  const DType dtype = compute_dtype(x, "rms_norm");
  const Tensor xc = prepared(x, dtype), gc = prepared(gamma, dtype);
  Tensor result = Tensor::empty(x.shape(), dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    const int64_t cols = x.size(-1);
    rms_norm_forward(xc.data<T>(), data_or_null<T>(gc), eps, result.data<T>(), cols ? x.numel() / cols : 0, cols);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x, gamma})) {
    autograd::record(result, "rms_norm", {x, gamma},
                     [xc, gc, eps](const Tensor& grad) { return gradients(xc, gc, eps, prepared(grad, xc.dtype())); });
  }
  return result;
}

}  // namespace vitrail::ops
