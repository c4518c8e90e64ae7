// SPDX-License-Identifier: Apache-2.0
// Linear layers with quantised activations, in the form that runtimes turn into an integer GEMM: QuantizeLinear and
// DequantizeLinear before both operands (onnxruntime.ai/docs/performance/model-optimizations/quantization.html, "QDQ").
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/onnx/lowering_internal.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::onnx {
namespace {

// weight [out, in] rounded to nearest, with a scale for each row.  `name` is for errors.
QuantizedTensor rounded_rows(const Tensor& weight, const std::string& name) {
  const Tensor dense = weight.to(DType::f32).contiguous();
  const int64_t out = dense.size(0), in = dense.size(1);
  QuantizedTensor result{Tensor::empty({out, in}, DType::i8), Tensor::empty({out})};
  for (int64_t r = 0; r < out; ++r) {
    const float scale =
        kernels::quantize_weight_row(dense.data<float>() + r * in, in, result.values.data<int8_t>() + r * in);
    if (!std::isfinite(scale)) throw Error(name, "finite weights", str("NaN or infinity in row ", r));
    result.scales.data<float>()[r] = scale;
  }
  return result;
}

}  // namespace

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
  const QuantizedTensor rounded = stored && !stored->correction ? *stored : rounded_rows(weight, name);
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
