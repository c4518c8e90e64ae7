// SPDX-License-Identifier: Apache-2.0
// Uses public headers of the library only.
#include "examples/extending/rms_norm.h"

#include <algorithm>

#include "examples/extending/rms_norm_kernel.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/operation.h"

namespace extending {
namespace {

using namespace vitrail;

// The vector kernel for f32, the scalar reference for f64.
void forward(const float* x, const float* gamma, double eps, float* y, int64_t rows, int64_t cols) {
  rms_norm_rows(x, gamma, static_cast<float>(eps), y, rows, cols);
}
void forward(const double* x, const double* gamma, double eps, double* y, int64_t rows, int64_t cols) {
  for (int64_t at = 0; at < rows * cols; at += cols) scalar::rms_norm_row(x + at, gamma, eps, y + at, cols);
}

// With r = 1 / √(mean(x²) + ε) and g = grad ⊙ γ:  dx = r (g − x r² mean(g ⊙ x)),  dγ = Σ over rows of grad ⊙ x r.
template <class T>
void backward(const T* grad, const T* x, const T* gamma, double eps, T* grad_x, T* grad_gamma, int64_t rows,
              int64_t cols) {
  if (grad_gamma) std::fill_n(grad_gamma, cols, T(0));
  for (int64_t row = 0; row < rows; ++row) {
    const T *in = x + row * cols, *g = grad + row * cols;
    T squares = 0, dot = 0;
    for (int64_t c = 0; c < cols; ++c) {
      squares += in[c] * in[c];
      dot += g[c] * (gamma ? gamma[c] : 1) * in[c];
    }
    const T r = 1 / std::sqrt(squares / static_cast<T>(cols) + static_cast<T>(eps));
    const T shared = r * r * dot / static_cast<T>(cols);
    for (int64_t c = 0; c < cols; ++c) {
      grad_x[row * cols + c] = r * (g[c] * (gamma ? gamma[c] : 1) - in[c] * shared);
      if (grad_gamma) grad_gamma[c] += g[c] * in[c] * r;
    }
  }
}

std::string onnx(ops::OnnxValues& values, const ops::Tensors& in, double eps) {
  ops::OnnxGraph& graph = values.graph();
  const std::string x = values.value_of(in[0]);
  const std::string mean_square = values.mean(graph.node("Mul", {x, x}), in[0].rank() - 1, true);
  const std::string root = graph.node("Sqrt", {graph.node("Add", {mean_square, graph.scalar(eps)})});
  const std::string y = graph.node("Div", {x, root});
  return in[1].defined() ? graph.node("Mul", {y, values.value_of(in[1])}) : y;
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  if (x.rank() < 1) throw Error("rms_norm", "x [..., C]", "a scalar");
  if (gamma.defined() && !(gamma.shape() == Shape{x.size(-1)})) {
    throw Error("rms_norm", str("gamma [", x.size(-1), "] for x ", x.shape()), gamma.shape().to_string());
  }
  const int64_t cols = x.size(-1), rows = cols == 0 ? 0 : x.numel() / cols;
  return ops::apply(
      {.name = "rms_norm",
       .shape = x.shape(),
       .kernel = [=](auto in, auto out) { forward(in[0].data, in[1].data, eps, out[0].data, rows, cols); },
       .gradient =
           [=](const ops::Tensors& in, const ops::Tensors&) {
             return ops::backward_kernel(in, in, [=](auto from, auto grads) {
               backward(from[0].data, from[1].data, from[2].data, eps, grads[0].data, grads[1].data, rows, cols);
             });
           },
       .keeps_token_order = true,
       .onnx = [eps](ops::OnnxValues& values, const auto& in, const auto&) { return onnx(values, in, eps); }},
      {x, gamma});
}

}  // namespace extending
