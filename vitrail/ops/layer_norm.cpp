#include "vitrail/ops/layer_norm.h"

#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/layer_norm.h"
#include "vitrail/kernels/scalar.h"
#include "vitrail/ops/dispatch.h"

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

// With x̂ = (x − mean) / σ and g = grad · γ:  grad_x = (g − mean(g) − x̂ · mean(g · x̂)) / σ,
// grad_γ = Σ grad · x̂, grad_β = Σ grad over the rows.
template <class T>
std::vector<Tensor> layer_norm_backward(const Tensor& x, const Tensor& gamma, bool has_beta, T eps,
                                        const Tensor& grad) {
  const int64_t cols = x.size(-1), rows = cols ? x.numel() / cols : 0;
  Tensor grad_x = Tensor::empty(x.shape(), x.dtype()), grad_gamma, grad_beta;
  if (gamma.defined()) grad_gamma = Tensor::zeros({cols}, x.dtype());
  if (has_beta) grad_beta = Tensor::zeros({cols}, x.dtype());
  const T* scale = data_or_null<T>(gamma);
  for (int64_t r = 0; r < rows; ++r) {
    const T* xr = x.data<T>() + r * cols;
    const T* gr = grad.data<T>() + r * cols;
    T mean = 0, variance = 0, sum_g = 0, sum_gx = 0;
    for (int64_t c = 0; c < cols; ++c) mean += xr[c] / T(cols);
    for (int64_t c = 0; c < cols; ++c) variance += (xr[c] - mean) * (xr[c] - mean) / T(cols);
    const T inverse = T(1) / std::sqrt(variance + eps);
    for (int64_t c = 0; c < cols; ++c) {
      const T hat = (xr[c] - mean) * inverse, g = gr[c] * (scale ? scale[c] : T(1));
      sum_g += g;
      sum_gx += g * hat;
      if (scale) grad_gamma.data<T>()[c] += gr[c] * hat;
      if (has_beta) grad_beta.data<T>()[c] += gr[c];
    }
    for (int64_t c = 0; c < cols; ++c) {
      const T hat = (xr[c] - mean) * inverse, g = gr[c] * (scale ? scale[c] : T(1));
      grad_x.data<T>()[r * cols + c] = (g - sum_g / T(cols) - hat * sum_gx / T(cols)) * inverse;
    }
  }
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
    record(OpKind::layer_norm, {x, gamma, beta}, {result}, {.eps = eps});
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
    autograd::record(
        result, "layer_norm", {x, gamma, beta}, [xc, gc, has_beta = beta.defined(), eps](const Tensor& grad) {
          std::vector<Tensor> grads;
          dispatch_compute(xc.dtype(), [&](auto tag) {
            using T = decltype(tag);
            grads = layer_norm_backward<T>(xc, gc, has_beta, static_cast<T>(eps), prepared(grad, xc.dtype()));
          });
          return grads;
        });
  }
  return result;
}

}  // namespace vitrail::ops
