// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {
namespace {

// x · σ(factor · x)
std::string sigmoid_gate(GraphBuilder& graph, const std::string& x, double factor) {
  const std::string scaled = factor == 1 ? x : graph.node("Mul", {x, graph.scalar(factor)});
  return graph.node("Mul", {x, graph.node("Sigmoid", {scaled})});
}

// x · (1 + y) / 2
std::string half_one_plus(GraphBuilder& graph, const std::string& x, const std::string& y) {
  const std::string product = graph.node("Mul", {x, graph.node("Add", {y, graph.scalar(1)})});
  return graph.node("Mul", {product, graph.scalar(0.5)});
}

std::string gelu(GraphBuilder& graph, const std::string& x) {
  return half_one_plus(graph, x, graph.node("Erf", {graph.node("Div", {x, graph.scalar(std::numbers::sqrt2)})}));
}

std::string gelu_tanh(GraphBuilder& graph, const std::string& x) {
  const std::string cube = graph.node("Mul", {graph.node("Mul", {x, x}), x});
  const std::string sum = graph.node("Add", {x, graph.node("Mul", {cube, graph.scalar(0.044715)})});
  const double factor = std::sqrt(2 / std::numbers::pi);
  return half_one_plus(graph, x, graph.node("Tanh", {graph.node("Mul", {sum, graph.scalar(factor)})}));
}

}  // namespace

std::string lower_activation(GraphBuilder& graph, kernels::Activation activation, const std::string& x) {
  switch (activation) {
    case kernels::Activation::none:
      return x;
    case kernels::Activation::gelu:
      return gelu(graph, x);
    case kernels::Activation::gelu_tanh:
      return gelu_tanh(graph, x);
    case kernels::Activation::quick_gelu:
      return sigmoid_gate(graph, x, 1.702);
    case kernels::Activation::relu:
      return graph.node("Relu", {x});
    case kernels::Activation::silu:
      return sigmoid_gate(graph, x, 1);
    case kernels::Activation::tanh:
      return graph.node("Tanh", {x});
  }
  return x;
}

}  // namespace vitrail::onnx
