// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/activation.h"

#include <cmath>
#include <numbers>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"
#include "vitrail/ops/operation.h"

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

void apply_activation(Activation kind, const float* x, float* y, int64_t n) { kernels::activate(kind, x, y, n); }
void apply_activation(Activation kind, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = kernels::scalar::activate(kind, x[i]);
}

void silu_gate(const View<const float>& x, float* y, int64_t ld, int64_t cols) {
  const Rows from(x);
  kernels::silu_gate(x.data, from.ld, y, ld, from.count, cols);
}
void silu_gate(const View<const double>& x, double* y, int64_t ld, int64_t cols) {
  const Rows from(x);
  for (int64_t r = 0; r < from.count; ++r) kernels::scalar::silu_gate(x.data + r * from.ld, y + r * ld, cols);
}

// x · σ(factor · x)
std::string sigmoid_gate(OnnxGraph& graph, const std::string& x, double factor) {
  const std::string scaled = factor == 1 ? x : graph.node("Mul", {x, graph.scalar(factor)});
  return graph.node("Mul", {x, graph.node("Sigmoid", {scaled})});
}

// x · (1 + y) / 2
std::string half_one_plus(OnnxGraph& graph, const std::string& x, const std::string& y) {
  const std::string product = graph.node("Mul", {x, graph.node("Add", {y, graph.scalar(1)})});
  return graph.node("Mul", {product, graph.scalar(0.5)});
}

std::string onnx_gelu(OnnxGraph& graph, const std::string& x) {
  return half_one_plus(graph, x, graph.node("Erf", {graph.node("Div", {x, graph.scalar(std::numbers::sqrt2)})}));
}

std::string onnx_gelu_tanh(OnnxGraph& graph, const std::string& x) {
  const std::string cube = graph.node("Mul", {graph.node("Mul", {x, x}), x});
  const std::string sum = graph.node("Add", {x, graph.node("Mul", {cube, graph.scalar(0.044715)})});
  const double factor = std::sqrt(2 / std::numbers::pi);
  return half_one_plus(graph, x, graph.node("Tanh", {graph.node("Mul", {sum, graph.scalar(factor)})}));
}

}  // namespace

Tensor activation(const Tensor& x, Activation kind) {
  return apply(
      {.name = "activation",
       .shape = x.shape(),
       .kernel = [kind](auto in, auto out) { apply_activation(kind, in[0].data, out[0].data, out[0].tensor->numel()); },
       .gradient = [kind](const Tensors& in, const Tensors&) -> Backward {
         return [kind, x = in[0]](const Tensor& grad) {
           return Tensors{activation_backward(kind, x, prepared(grad, x.dtype()))};
         };
       },
       .text = kernels::name_of(kind),
       .profile = kernels::name_of(kind),
       .keeps_token_order = true,
       .onnx = [kind](OnnxValues& onnx, const auto& in,
                      const auto&) { return onnx_activation(onnx.graph(), kind, onnx.value_of(in[0])); }},
      {x});
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

std::string onnx_activation(OnnxGraph& graph, Activation kind, const std::string& x) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::gelu:
      return onnx_gelu(graph, x);
    case Activation::gelu_tanh:
      return onnx_gelu_tanh(graph, x);
    case Activation::quick_gelu:
      return sigmoid_gate(graph, x, 1.702);
    case Activation::relu:
      return graph.node("Relu", {x});
    case Activation::silu:
      return sigmoid_gate(graph, x, 1);
    case Activation::tanh:
      return graph.node("Tanh", {x});
  }
  return x;
}

Tensor silu_gate(const Tensor& x) {
  if (x.rank() < 1 || x.size(-1) % 2 != 0) throw Error("silu_gate", "an even last extent", x.shape().to_string());
  Shape shape = x.shape();
  const int64_t cols = shape[shape.rank() - 1] /= 2;
  return apply({.name = "silu_gate",
                .shape = shape,
                .kernel = [cols](auto in, auto out) { silu_gate(in[0], out[0].data, Rows(out[0]).ld, cols); },
                .gradient =
                    [cols](const auto& in, const auto&) {
                      return backward_kernel(in, {in[0]}, [cols](auto from, auto grads) {
                        silu_gate_backward(from[1].data, from[0].data, grads[0].data, Rows(from[0]).count, cols);
                      });
                    },
                .layout = with_evenly_spaced_rows,
                .profile = "SiLU gate",
                .keeps_token_order = true,
                .onnx =
                    [cols](OnnxValues& onnx, const auto& in, const auto&) {
                      OnnxGraph& graph = onnx.graph();
                      const std::string value = onnx.value_of(in[0]), gate = graph.slice(value, {-1}, {0}, {cols});
                      return graph.node("Mul", {onnx_activation(graph, Activation::silu, gate),
                                                graph.slice(value, {-1}, {cols}, {2 * cols})});
                    }},
               {x});
}

}  // namespace vitrail::ops
