// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/elementwise.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/ops/dispatch_internal.h"

namespace vitrail::ops {
namespace {

void add_span(const float* a, const float* b, float* out, int64_t n) { kernels::add(a, b, out, n); }
void add_span(const double* a, const double* b, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
void multiply_span(const float* a, const float* b, float* out, int64_t n) { kernels::multiply(a, b, out, n); }
void multiply_span(const double* a, const double* b, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

// True if broadcasting `shape` to `target` repeats its memory as a block: without leading extents of 1, it equals the
// last extents of `target`, as a bias or a table of positions.
bool broadcasts_as_block(const Shape& shape, const Shape& target) {
  int64_t numel = 1;
  int matched = 0;
  while (matched < shape.rank() && shape.back(matched) == target.back(matched)) numel *= shape.back(matched++);
  return numel == shape.numel();
}

// Calls fn(a, b, out, n) on blocks of the memory of two tensors that broadcast to `shape`.
template <class T, class Fn>
Tensor combine(const Tensor& a, const Tensor& b, const Shape& shape, Fn fn) {
  const Tensor result = Tensor::empty(shape, a.dtype());
  if (result.numel() == 0) return result;
  const Tensor left = a.expand(shape).contiguous();
  constexpr int64_t kMinBlock = 64;  // a call for less, such as a factor, takes longer than copies of it
  const bool as_block = broadcasts_as_block(b.shape(), shape) && b.numel() >= std::min(kMinBlock, result.numel());
  const Tensor right = as_block ? b.contiguous() : b.expand(shape).contiguous();
  const int64_t block = right.numel();
  for (int64_t at = 0; at < result.numel(); at += block) {
    fn(left.data<T>() + at, right.data<T>(), result.data<T>() + at, block);
  }
  return result;
}

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor result;
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "mul");
  dispatch_compute(a.dtype(), [&](auto tag) {
    using T = decltype(tag);
    result = combine<T>(a, b, shape, [](const T* x, const T* y, T* to, int64_t n) { multiply_span(x, y, to, n); });
  });
  return result;
}

// Records an operation on a meta tensor.  Returns undefined if the operation must be computed instead.
Tensor recorded(OpKind kind, const Tensor& a, const Tensor& b, const Shape& shape) {
  if (!symbolic({&a, &b})) return {};
  const Tensor result = symbolic_result(shape, a.dtype());
  record(kind, {a, b}, {result});
  return result;
}

}  // namespace

Tensor reduced_to(const Tensor& grad, const Shape& shape) {
  if (grad.shape() == shape) return grad;
  const int64_t cols = shape.numel();
  if (grad.dtype() != DType::f64 && broadcasts_as_block(shape, grad.shape()) && cols > 0) {
    const Tensor from = prepared(grad, DType::f32), result = Tensor::empty(shape, DType::f32);
    kernels::sum_rows(from.data<float>(), nullptr, grad.numel() / cols, cols, result.data<float>());
    return result.to(grad.dtype());
  }
  Shape wide = grad.shape();  // `shape` with leading extents of 1, so that both have the same rank
  for (int i = 0; i < wide.rank(); ++i) {
    const int own = i - (wide.rank() - shape.rank());
    wide[i] = own < 0 ? 1 : shape[own];
  }
  const Tensor sums = Tensor::zeros(wide, DType::f64), to = sums.expand(grad.shape());
  const Tensor from = grad.to(DType::f64).contiguous();
  double* const sum = sums.data<double>();
  const double* const value = from.data<double>();
  for (int64_t i = 0; i < from.numel(); ++i) {
    int64_t at = 0, remaining = i;
    for (int axis = wide.rank() - 1; axis >= 0; --axis) {
      at += remaining % grad.shape()[axis] * to.strides()[axis];
      remaining /= grad.shape()[axis];
    }
    sum[at] += value[i];
  }
  return sums.to(grad.dtype()).view(shape);
}

Tensor add(const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "add");
  if (const Tensor listed = recorded(OpKind::add, a, b, shape); listed.defined()) return listed;
  const DType dtype = compute_dtype(a, "add");
  const Tensor ac = prepared(a, dtype), bc = prepared(b, dtype);
  Tensor result;
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    result = combine<T>(ac, bc, shape, [](const T* x, const T* y, T* to, int64_t n) { add_span(x, y, to, n); });
  });
  result = result.to(a.dtype());
  if (autograd::recording({a, b})) {
    autograd::record(result, "add", {a, b}, [left = a.shape(), right = b.shape()](const Tensor& grad) {
      return std::vector<Tensor>{reduced_to(grad, left), reduced_to(grad, right)};
    });
  }
  return result;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "mul");
  if (const Tensor listed = recorded(OpKind::mul, a, b, shape); listed.defined()) return listed;
  const DType dtype = compute_dtype(a, "mul");
  const Tensor ac = prepared(a, dtype), bc = prepared(b, dtype);
  Tensor result = product(ac, bc).to(a.dtype());
  if (autograd::recording({a, b})) {
    const bool for_a = autograd::requires_grad(a), for_b = autograd::requires_grad(b);
    autograd::record(result, "mul", {a, b}, [ac, bc, for_a, for_b](const Tensor& grad) {
      const Tensor g = prepared(grad, ac.dtype());
      return std::vector<Tensor>{for_a ? reduced_to(product(g, bc), ac.shape()) : Tensor(),
                                 for_b ? reduced_to(product(g, ac), bc.shape()) : Tensor()};
    });
  }
  return result;
}

Tensor dropout_mask(const Shape& shape, double p, uint64_t key, const std::vector<int64_t>& positions, DType dtype) {
  const Tensor mask = Tensor::empty(shape, dtype == DType::f64 ? DType::f64 : DType::f32);
  const int64_t samples = shape.rank() ? shape[0] : 1, per_sample = samples ? mask.numel() / samples : 0;
  if (!positions.empty() && static_cast<int64_t>(positions.size()) != samples) {
    throw Error("dropout", str(samples, " sample positions"), str(positions.size()));
  }
  const auto threshold = static_cast<uint32_t>(p * 4294967296.0);
  dispatch_compute(mask.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T keep_scale = static_cast<T>(1.0 / (1.0 - p));
    parallel_for(0, samples, 1 + 4096 / (per_sample + 1), [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        RandomStream random(key, static_cast<uint64_t>(positions.empty() ? b : positions[b]));
        T* const to = mask.data<T>() + b * per_sample;
        for (int64_t i = 0; i < per_sample; ++i) to[i] = random.bits() < threshold ? T(0) : keep_scale;
      }
    });
  });
  return mask.to(dtype);
}

}  // namespace vitrail::ops
