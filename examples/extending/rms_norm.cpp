// SPDX-License-Identifier: Apache-2.0
// Uses public headers of the library only.
#include "examples/extending/rms_norm.h"

#include <memory>

#include "examples/extending/rms_norm_kernel.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace extending {
namespace {

using namespace vitrail;

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

int64_t rows_of(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

// f32 runs the vector kernel, f64 the scalar reference.  x and gamma are contiguous and of one dtype.
Tensor forward(const Tensor& x, const Tensor& gamma, double eps) {
  const Tensor y = Tensor::empty(x.shape(), x.dtype());
  const int64_t rows = rows_of(x), cols = x.size(-1);
  if (x.dtype() == DType::f32) {
    rms_norm_rows(x.data<float>(), data_or_null<float>(gamma), static_cast<float>(eps), y.data<float>(), rows, cols);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      scalar::rms_norm_row(x.data<double>() + r * cols, data_or_null<double>(gamma), eps, y.data<double>() + r * cols,
                           cols);
    }
  }
  return y;
}

// With r = 1 / √(mean(x²) + ε) and g = grad ⊙ γ:  dx = r (g − x r² mean(g ⊙ x)),  dγ = Σ over rows of grad ⊙ x r.
template <class T>
std::vector<Tensor> backward(const Tensor& x, const Tensor& gamma, double eps, const Tensor& grad) {
  const Tensor grad_x = Tensor::empty(x.shape(), x.dtype());
  const Tensor grad_gamma = gamma.defined() ? Tensor::zeros(gamma.shape(), x.dtype()) : Tensor();
  const T* const weight = data_or_null<T>(gamma);
  T* const grad_weight = data_or_null<T>(grad_gamma);
  const int64_t cols = x.size(-1);
  for (int64_t row = 0; row < rows_of(x); ++row) {
    const T *in = x.data<T>() + row * cols, *g = grad.data<T>() + row * cols;
    T squares = 0, dot = 0;
    for (int64_t c = 0; c < cols; ++c) {
      squares += in[c] * in[c];
      dot += g[c] * (weight ? weight[c] : 1) * in[c];
    }
    const T r = 1 / std::sqrt(squares / static_cast<T>(cols) + static_cast<T>(eps));
    const T shared = r * r * dot / static_cast<T>(cols);
    for (int64_t c = 0; c < cols; ++c) {
      grad_x.data<T>()[row * cols + c] = r * (g[c] * (weight ? weight[c] : 1) - in[c] * shared);
      if (grad_weight) grad_weight[c] += g[c] * in[c] * r;
    }
  }
  return {grad_x, grad_gamma};
}

// On the meta device there is no data: the operation is recorded for a compiled program.
Tensor recorded(const Tensor& x, const Tensor& gamma, double eps) {
  const Tensor result = ops::symbolic_result(x.shape(), x.dtype());
  ops::CustomOperation step{.name = "rms_norm", .keeps_token_order = true};
  step.compute = [eps, rows = rows_of(x), cols = x.size(-1)](const float* const* inputs, float* const* outputs) {
    rms_norm_rows(inputs[0], inputs[1], static_cast<float>(eps), outputs[0], rows, cols);
  };
  ops::record(ops::OpKind::custom, {ops::contiguous(x), gamma}, {result},
              {.custom = std::make_shared<const ops::CustomOperation>(std::move(step))});
  return result;
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  // 1. Shapes and dtypes.
  if (x.rank() < 1 || !is_floating(x.dtype())) throw Error("rms_norm", "a floating x [..., C]", x.shape().to_string());
  if (gamma.defined() && !(gamma.shape() == Shape{x.size(-1)})) {
    throw Error("rms_norm", str("gamma [", x.size(-1), "] for x ", x.shape()), gamma.shape().to_string());
  }
  // 2. Recording.
  if (ops::symbolic({&x})) return recorded(x, gamma, eps);
  // 3. Conversion: f64 is computed in f64, other dtypes in f32.  detach() leaves the autograd graph.
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto prepared = [dtype](const Tensor& t) { return t.defined() ? t.detach().contiguous().to(dtype) : t; };
  const Tensor xc = prepared(x), gc = prepared(gamma);
  // 4. Values.
  Tensor result = forward(xc, gc, eps).to(x.dtype());
  // 5. Gradient.
  if (autograd::recording({x, gamma})) {
    autograd::record(result, "rms_norm", {x, gamma}, [xc, gc, eps, prepared](const Tensor& grad) {
      const auto function = xc.dtype() == DType::f64 ? backward<double> : backward<float>;
      return function(xc, gc, eps, prepared(grad));
    });
  }
  return result;
}

}  // namespace extending
