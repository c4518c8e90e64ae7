// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/layer_norm.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/dispatch_internal.h"
#include "vitrail/ops/layout_internal.h"

namespace vitrail::ops {
namespace {

void layer_norm_forward(const float* x, const float* gamma, const float* beta, double eps, float* y, int64_t rows,
                        int64_t cols) {
  kernels::layer_norm(x, cols, gamma, beta, static_cast<float>(eps), y, cols, rows, cols);
}
void layer_norm_forward(const double* x, const double* gamma, const double* beta, double eps, double* y, int64_t rows,
                        int64_t cols) {
  kernels::scalar::layer_norm(x, cols, gamma, beta, eps, y, cols, rows, cols);
}

void layer_norm_backward(const float* x, const float* gamma, double eps, const float* grad, int64_t rows, int64_t cols,
                         float* grad_x, float* grad_gamma, float* grad_beta) {
  kernels::layer_norm_backward(x, gamma, static_cast<float>(eps), grad, rows, cols, grad_x, grad_gamma, grad_beta);
}
void layer_norm_backward(const double* x, const double* gamma, double eps, const double* grad, int64_t rows,
                         int64_t cols, double* grad_x, double* grad_gamma, double* grad_beta) {
  kernels::scalar::layer_norm_backward(x, gamma, eps, grad, rows, cols, grad_x, grad_gamma, grad_beta);
}

std::vector<Tensor> gradients(const Tensor& x, const Tensor& gamma, bool has_beta, double eps, const Tensor& grad) {
  const int64_t cols = x.size(-1);
  const Tensor grad_x = Tensor::empty(x.shape(), x.dtype());
  const Tensor grad_gamma = gamma.defined() ? Tensor::zeros({cols}, x.dtype()) : Tensor();
  const Tensor grad_beta = has_beta ? Tensor::zeros({cols}, x.dtype()) : Tensor();
  dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    auto memory = [](const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; };
    layer_norm_backward(x.data<T>(), data_or_null<T>(gamma), eps, grad.data<T>(), rows_of(x), cols, grad_x.data<T>(),
                        memory(grad_gamma), memory(grad_beta));
  });
  return {grad_x, grad_gamma, grad_beta};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  if (x.rank() < 1) throw Error("layer_norm", "x [..., C]", "a scalar");
  for (const Tensor* p : {&gamma, &beta}) {
    if (p->defined() && !(p->shape() == Shape{x.size(-1)})) {
      throw Error("layer_norm", str("parameters of shape [", x.size(-1), "] for x ", x.shape()),
                  p->shape().to_string());
    }
  }
  if (symbolic({&x})) {
    const Tensor result = symbolic_result(x.shape(), x.dtype());
    record(OpKind::layer_norm, {with_evenly_spaced_rows(x), gamma, beta}, {result}, {.eps = eps});
    return result;
  }
  const DType dtype = compute_dtype(x, "layer_norm");
  const Tensor xc = prepared(x, dtype), gc = prepared(gamma, dtype), bc = prepared(beta, dtype);
  Tensor result = Tensor::empty(x.shape(), dtype);
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    const int64_t cols = x.size(-1);
    layer_norm_forward(xc.data<T>(), data_or_null<T>(gc), data_or_null<T>(bc), eps, result.data<T>(),
                       cols ? x.numel() / cols : 0, cols);
  });
  result = result.to(x.dtype());
  if (autograd::recording({x, gamma, beta})) {
    autograd::record(result, "layer_norm", {x, gamma, beta},
                     [xc, gc, has_beta = beta.defined(), eps](const Tensor& grad) {
                       return gradients(xc, gc, has_beta, eps, prepared(grad, xc.dtype()));
                     });
  }
  return result;
}

}  // namespace vitrail::ops
