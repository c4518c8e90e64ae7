#include "vitrail/ops/residual_add.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/layer_norm.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::ops {
namespace {

void check(const Tensor& x, const Tensor& y, const Tensor& scale, const Tensor& keep) {
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

// Calls fn(element, channel, keep factor) over a contiguous [B, ..., C].
template <class T, class Fn>
void for_each(const Tensor& x, const Tensor& keep, Fn fn) {
  const int64_t channels = x.size(-1), per_sample = x.size(0) ? x.numel() / x.size(0) : 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    fn(i, i % channels, keep.defined() ? static_cast<T>(keep.data<double>()[i / per_sample]) : T(1));
  }
}

template <class T>
void residual_add_forward(const Tensor& x, const Tensor& y, const Tensor& scale, const Tensor& keep,
                          const Tensor& out) {
  const T* s = data_or_null<T>(scale);
  const T *xs = x.data<T>(), *ys = y.data<T>();
  T* to = out.data<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (!keep.defined() && x.numel() > 0) {
      const int64_t cols = x.size(-1);
      kernels::residual_layer_norm(xs, ys, s, nullptr, nullptr, 0, to, nullptr, x.numel() / cols, cols);
      return;
    }
  }
  for_each<T>(x, keep, [&](int64_t i, int64_t c, T k) { to[i] = xs[i] + k * (s ? s[c] * ys[i] : ys[i]); });
}

template <class T>
std::vector<Tensor> residual_add_backward(const Tensor& y, const Tensor& scale, const Tensor& keep,
                                          const Tensor& grad) {
  Tensor grad_y = Tensor::empty(y.shape(), y.dtype()), grad_scale;
  if (scale.defined()) grad_scale = Tensor::zeros(scale.shape(), y.dtype());
  const T* s = data_or_null<T>(scale);
  const T *g = grad.data<T>(), *ys = y.data<T>();
  for_each<T>(y, keep, [&](int64_t i, int64_t c, T k) {
    grad_y.data<T>()[i] = g[i] * k * (s ? s[c] : T(1));
    if (s) grad_scale.data<T>()[c] += g[i] * k * ys[i];
  });
  return {grad, grad_y, grad_scale};
}

}  // namespace

Tensor residual_add(const Tensor& x, const Tensor& y, const Tensor& scale, const Tensor& keep) {
  check(x, y, scale, keep);
  if (symbolic({&x, &y})) {
    if (keep.defined()) throw Error("residual_add", "no stochastic depth in a recorded pass", "keep factors");
    const Tensor result = symbolic_result(x.shape(), x.dtype());
    record(OpKind::residual_add, {x, y, scale}, {result});
    return result;
  }
  const DType dtype = compute_dtype(x, "residual_add");
  const Tensor xc = prepared(x, dtype), yc = prepared(y, dtype), sc = prepared(scale, dtype);
  const Tensor kc = prepared(keep, DType::f64);
  Tensor result = Tensor::empty(x.shape(), dtype);
  dispatch_compute(dtype, [&](auto tag) { residual_add_forward<decltype(tag)>(xc, yc, sc, kc, result); });
  result = result.to(x.dtype());
  if (autograd::recording({x, y, scale})) {
    autograd::record(result, "residual_add", {x, y, scale}, [yc, sc, kc](const Tensor& grad) {
      std::vector<Tensor> grads;
      dispatch_compute(yc.dtype(), [&](auto tag) {
        grads = residual_add_backward<decltype(tag)>(yc, sc, kc, prepared(grad, yc.dtype()));
      });
      return grads;
    });
  }
  return result;
}

}  // namespace vitrail::ops
