// SPDX-License-Identifier: Apache-2.0
// The library's custom operations as operators.  Maps are [B, h, w, C].
#include "vitrail/onnx/lowering_internal.h"

#include "vitrail/base/round_up_internal.h"

namespace vitrail::onnx {
const std::map<std::string, Lowering::Rule>& Lowering::custom_rules() {
  static const std::map<std::string, Rule> rules{
      {"matmul", &Lowering::matmul},
      {"window_partition", &Lowering::window_partition},
      {"window_unpartition", &Lowering::window_unpartition},
      {"relative_self_attention", &Lowering::relative_self_attention},
      {"depthwise_conv_3x3", &Lowering::depthwise_conv_3x3},
      {"pixel_shuffle", &Lowering::pixel_shuffle},
  };
  return rules;
}

std::string Lowering::matmul(const ops::Operation& operation) {
  const Tensor& b = operation.inputs[1];
  const int last = b.rank() - 1;
  const bool transposed = operation.attributes.axis == last;
  return graph_.node("MatMul", {value_of(operation.inputs[0]), value_of(transposed ? b.transpose(last - 1, last) : b)});
}

// x with cells of the value `fill` [C], 0 if it is undefined, on the right and below.
std::string Lowering::padded_windows(const std::string& x, const Tensor& fill, const Ints& pads) {
  const auto padded = [&](const std::string& map) { return graph_.node("Pad", {map, graph_.constant(pads)}); };
  if (!fill.defined()) return padded(x);
  // Pad has one value for all channels.  The fill is the bias of a linear layer, which is added after the padding.
  const std::string value = value_of(fill);
  const auto sum = sums_.find(x);
  const bool is_bias = sum != sums_.end() && sum->second.bias == value;
  return graph_.node("Add", {padded(is_bias ? sum->second.x : graph_.node("Sub", {x, value})), value});
}

// [B, h, w, C] → [B · windows, window · window, C]
std::string Lowering::window_partition(const ops::Operation& operation) {
  const Tensor& map = operation.inputs[0];
  const int64_t window = operation.attributes.height, channels = map.size(3);
  const int64_t down = ceil_div(map.size(1), window), across = ceil_div(map.size(2), window);
  const int64_t below = down * window - map.size(1), right = across * window - map.size(2);
  std::string x = value_of(map);
  if (below > 0 || right > 0) x = padded_windows(x, operation.inputs[1], {0, 0, 0, 0, 0, below, right, 0});
  x = graph_.transpose(graph_.reshape(x, {-1, down, window, across, window, channels}), {0, 1, 3, 2, 4, 5});
  return graph_.reshape(x, {-1, window * window, channels});
}

// [B · windows, window · window, C] → [B, h, w, C]
std::string Lowering::window_unpartition(const ops::Operation& operation) {
  const Tensor& map = operation.outputs[0];
  const int64_t window = operation.attributes.height, channels = map.size(3);
  const int64_t down = ceil_div(map.size(1), window), across = ceil_div(map.size(2), window);
  std::string x = graph_.reshape(value_of(operation.inputs[0]), {-1, down, across, window, window, channels});
  x = graph_.reshape(graph_.transpose(x, {0, 1, 3, 2, 4, 5}), {-1, down * window, across * window, channels});
  if (down * window == map.size(1) && across * window == map.size(2)) return x;
  return graph_.slice(x, {1, 2}, {0, 0}, {map.size(1), map.size(2)});
}

// A convolution of x [B, h, w, C] with padding 1.  weights: [out, C / group, 3, 3] and optionally the bias.
std::string Lowering::convolution(const Tensor& x, const std::vector<std::string>& weights, int64_t stride,
                                  int64_t group) {
  std::vector<std::string> inputs{graph_.transpose(value_of(x), {0, 3, 1, 2})};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const std::string y = graph_.node(
      "Conv", inputs,
      {{"group", group}, {"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{stride, stride}}});
  return graph_.transpose(y, {0, 2, 3, 1});
}

// A linear layer of 3×3 neighbourhoods, in the order (channel, tap) of the weight of a convolution.
std::string Lowering::unfolded_linear(const ops::Operation& unfold, const ops::Operation& operation) {
  const Tensor &map = unfold.inputs[0], &weight = operation.inputs[1], &bias = operation.inputs[2];
  std::vector<std::string> weights{value_of(weight.to(DType::f32).view({weight.size(0), map.size(3), 3, 3}))};
  if (bias.defined()) weights.push_back(value_of(bias));
  return lower_activation(graph_, operation.attributes.activation,
                          convolution(map, weights, unfold.attributes.height, 1));
}

// inputs: x, weight [9, C], bias
std::string Lowering::depthwise_conv_3x3(const ops::Operation& operation) {
  const int64_t channels = operation.inputs[0].size(3);
  const Tensor weight = operation.inputs[1].to(DType::f32).transpose(0, 1).reshape({channels, 1, 3, 3});
  return convolution(operation.inputs[0], {value_of(weight), value_of(operation.inputs[2])},
                     operation.attributes.height, channels);
}

// [B, h, w, C · f · f] → [B, f · h, f · w, C]
std::string Lowering::pixel_shuffle(const ops::Operation& operation) {
  const Tensor &x = operation.inputs[0], &result = operation.outputs[0];
  const int64_t height = x.size(1), width = x.size(2), channels = result.size(3), factor = result.size(1) / height;
  const std::string cells = graph_.reshape(value_of(x), {-1, height, width, channels, factor, factor});
  return graph_.reshape(graph_.transpose(cells, {0, 1, 4, 2, 5, 3}), {-1, height * factor, width * factor, channels});
}

}  // namespace vitrail::onnx
