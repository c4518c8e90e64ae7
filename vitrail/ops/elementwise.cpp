// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/elementwise.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/rowwise/elementwise.h"
#include "vitrail/ops/operation.h"
#include "vitrail/ops/row_loops_internal.h"

namespace vitrail::ops {
namespace {

// The element-wise functions: of two elements, and of blocks of memory.
struct Sum {
  void block(const float* a, const float* b, float* out, int64_t n) const { kernels::add(a, b, out, n); }
  void block(const double* a, const double* b, double* out, int64_t n) const {
    std::transform(a, a + n, b, out, *this);
  }
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Product {
  void block(const float* a, const float* b, float* out, int64_t n) const { kernels::multiply(a, b, out, n); }
  void block(const double* a, const double* b, double* out, int64_t n) const {
    std::transform(a, a + n, b, out, *this);
  }
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

// True if broadcasting `shape` to `target` repeats its memory as a block: without leading extents of 1, it equals the
// last extents of `target`, as a bias or a table of positions.
bool broadcasts_as_block(const Shape& shape, const Shape& target) {
  int64_t numel = 1;
  int matched = 0;
  while (matched < shape.rank() && shape.back(matched) == target.back(matched)) numel *= shape.back(matched++);
  return numel == shape.numel();
}

// out = function(a, b), broadcast.
template <class T, class Function>
void combine(const View<const T>& a, const View<const T>& b, const View<T>& out, const Function& function) {
  constexpr int64_t kMinBlock = 64;  // a call for less, such as a factor, takes longer than the loop
  const int64_t n = out.tensor->numel(), block = b.tensor->numel();
  if (n == 0) return;
  const bool in_blocks = a.tensor->shape() == out.tensor->shape() && a.tensor->is_contiguous() &&
                         b.tensor->is_contiguous() && out.tensor->is_contiguous() &&
                         broadcasts_as_block(b.tensor->shape(), out.tensor->shape()) && block >= std::min(kMinBlock, n);
  if (!in_blocks) {
    return combine_rows(a.data, *a.tensor, b.data, *b.tensor, out.data, *out.tensor, function);
  }
  for (int64_t at = 0; at < n; at += block) function.block(a.data + at, b.data, out.data + at, block);
}

template <class Function>
Operation elementwise(const char* name, const char* onnx_name, const Shape& shape, Function function) {
  return {.name = name,
          .shape = shape,
          .kernel = [function](auto in, auto out) { combine(in[0], in[1], out[0], function); },
          .layout = with_any_strides,
          .keeps_token_order = true,
          .strided_result = true,
          .onnx =
              [onnx_name](OnnxValues& onnx, const auto& in, const auto&) {
                return onnx.graph().node(onnx_name, {onnx.value_of(in[0]), onnx.value_of(in[1])});
              }};
}

Operation product(const Tensor& a, const Tensor& b) {
  return elementwise("mul", "Mul", broadcast_shapes(a.shape(), b.shape(), "mul"), Product());
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
  Operation sum = elementwise("add", "Add", broadcast_shapes(a.shape(), b.shape(), "add"), Sum());
  sum.gradient = [left = a.shape(), right = b.shape()](const auto&, const auto&) -> Backward {
    return [left, right](const Tensor& grad) { return Tensors{reduced_to(grad, left), reduced_to(grad, right)}; };
  };
  return apply(std::move(sum), {a, b});
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Operation operation = product(a, b);
  operation.gradient = [for_a = autograd::requires_grad(a), for_b = autograd::requires_grad(b)](
                           const Tensors& in, const Tensors&) -> Backward {
    return [a = in[0], b = in[1], for_a, for_b](const Tensor& grad) {
      const Tensor g = prepared(grad, a.dtype());
      const auto times = [&g](const Tensor& x) { return computed(product(g, x), {g, x})[0]; };
      return Tensors{for_a ? reduced_to(times(b), a.shape()) : Tensor(),
                     for_b ? reduced_to(times(a), b.shape()) : Tensor()};
    };
  };
  return apply(std::move(operation), {a, b});
}

Tensor exp(const Tensor& x) {
  return apply({.name = "exp",
                .shape = x.shape(),
                .kernel =
                    [](auto in, auto out) {
                      const int64_t n = in[0].tensor->numel();
                      std::transform(in[0].data, in[0].data + n, out[0].data,
                                     [](auto value) { return std::exp(value); });
                    },
                .gradient = [](const Tensors&, const Tensors& out) -> Backward {
                  return [y = out[0]](const Tensor& grad) {
                    const Tensor g = prepared(grad, y.dtype());
                    return Tensors{computed(product(g, y), {g, y})[0]};
                  };
                },
                .keeps_token_order = true,
                .plain_loop = true},
               {x});
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
