// SPDX-License-Identifier: Apache-2.0
// Linear layers with quantised activations, in the form that runtimes turn into an integer GEMM: QuantizeLinear and
// DequantizeLinear before both operands (onnxruntime.ai/docs/performance/model-optimizations/quantization.html, "QDQ").
#include "vitrail/onnx/lowering_internal.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::onnx {

// x W, W [out, in] transposed.
std::string Lowering::matmul(const Tensor& x, const Tensor& weight) {
  const std::string name = name_of_constant(weight);
  const auto activation = options_.activations.find(name.substr(0, name.rfind('.')));
  if (activation == options_.activations.end()) return graph_.node("MatMul", {value_of(x), transposed_weight(weight)});
  used_activations_.insert(activation->first);
  return quantized_matmul(value_of(x), activation->second, weight, name);
}

std::string Lowering::quantized_matmul(const std::string& x, const AffineQuantization& activation, const Tensor& weight,
                                       const std::string& name) {
  const auto dequantized = [&](const std::string& values, const std::string& scale, const std::string& zero_point,
                               const std::vector<Attribute>& attributes) {
    return graph_.node("DequantizeLinear", {values, scale, zero_point}, attributes);
  };
  const std::string scale = graph_.scalar(activation.scale);
  const std::string zero_point = graph_.integer(activation.zero_point, activation.dtype);
  const std::string integers = graph_.node("QuantizeLinear", {x, scale, zero_point});
  const QuantizedTensor* const stored = weight.quantized();
  const QuantizedTensor rounded = stored && !stored->correction ? *stored : quantize::to_int8(weight);
  // ONNX Runtime recognises an integer GEMM only where weights have zero points.
  const std::string zeros = graph_.constant(Tensor::zeros({weight.size(0)}, DType::i8), name + "_zero_point");
  const std::string weights =
      dequantized(graph_.constant(rounded.values.transpose(0, 1), name),
                  graph_.constant(rounded.scales, name + "_scale"), zeros, {{"axis", int64_t{1}}});
  return graph_.node("MatMul", {dequantized(integers, scale, zero_point, {}), weights});
}

std::vector<std::string> Lowering::unused_activations() const {
  std::vector<std::string> unused;
  for (const auto& [layer, activation] : options_.activations) {
    if (used_activations_.count(layer) == 0) unused.push_back(layer);
  }
  return unused;
}

}  // namespace vitrail::onnx
