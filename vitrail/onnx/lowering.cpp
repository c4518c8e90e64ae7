// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/lowering_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/onnx/view_internal.h"
#include "vitrail/ops/activation.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::onnx {
namespace {

// Repeated axes with extent 1: operators broadcast them.
Tensor without_repetition(Tensor tensor) {
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.strides()[axis] == 0 && tensor.size(axis) > 1) tensor = tensor.narrow(axis, 0, 1);
  }
  return tensor;
}

}  // namespace

void Lowering::bind_batch(const Tensor& input, const std::string& value) {
  bind(input, value);
  batch_source_ = value;
}

void Lowering::bind(const Tensor& tensor, const std::string& value) {
  written_[tensor.storage().get()] = {value, tensor.shape()};
  alive_.push_back(tensor);
}

std::string Lowering::name_of_constant(const Tensor& tensor) const {
  const auto name = parameter_names_.find(tensor.storage().get());
  return name == parameter_names_.end() ? "constant" : name->second;
}

std::string Lowering::constant(const Tensor& tensor) {
  return graph_.constant(without_repetition(tensor.to(DType::f32)), name_of_constant(tensor));
}

std::string Lowering::value_of(const Tensor& tensor) {
  if (!tensor.is_meta()) return constant(tensor);
  const auto found = written_.find(tensor.storage().get());
  if (found == written_.end()) {
    if (const auto name = parameter_names_.find(tensor.storage().get()); name != parameter_names_.end())
      throw Error("ONNX", "a model with its weights, which no session has packed", name->second + " without data");
    throw Error("ONNX", "operations that read the images, parameters or earlier results",
                str("a read of ", tensor.shape(), ", which nothing has written"));
  }
  return apply_view(graph_, found->second.value, found->second.shape, tensor, options_.outermost);
}

// The value with all repetitions, for operators that do not broadcast.
std::string Lowering::full_value_of(const Tensor& tensor) {
  const std::string x = value_of(tensor);
  const bool repeats = !tensor.is_meta() && !(without_repetition(tensor).shape() == tensor.shape());
  if (!repeats) return x;
  Ints shape(tensor.shape().begin(), tensor.shape().end());
  if (shape[0] != kRecordedBatch) return graph_.node("Expand", {x, graph_.constant(shape)});
  if (!options_.dynamic_batch) {
    shape[0] = 1;
    return graph_.node("Expand", {x, graph_.constant(shape)});
  }
  const std::string batch = graph_.extent(batch_source_, 0);
  const std::string others = graph_.constant(Ints(shape.begin() + 1, shape.end()));
  return graph_.node("Expand", {x, graph_.concat({batch, others}, 0)});
}

void Lowering::lower(const ops::RecordedOperation& recorded) {
  const ops::Operation& operation = *recorded.operation;
  std::string value;
  if (operation.kind == ops::OpKind::linear) {
    value = linear(recorded);
  } else if (operation.kind == ops::OpKind::cat) {
    value = cat(recorded);
  } else if (operation.onnx) {
    value = operation.onnx(*this, recorded.inputs, recorded.outputs);
  } else {
    throw Error("ONNX", "a model of operations that ONNX expresses", operation.name);
  }
  if (!value.empty()) bind(recorded.outputs[0], value);
}

std::string Lowering::derived_constant(const Tensor& from, const std::string& name,
                                       const std::function<Tensor()>& make) {
  std::string& value = derived_[{from.storage().get(), from.offset(), name}];
  if (value.empty()) {
    value = graph_.constant(make(), name);
    alive_.push_back(from);
  }
  return value;
}

std::string Lowering::difference(const std::string& x, const std::string& y) {
  const auto sum = sums_.find(x);
  return sum != sums_.end() && sum->second.bias == y ? sum->second.x : graph_.node("Sub", {x, y});
}

void Lowering::replace_linear(const Tensor& result, const Linear& linear) {
  linears_[result.storage().get()] = linear;
  alive_.push_back(result);
}

std::string Lowering::mean(const std::string& x, int64_t axis, bool keep) {
  const Attribute keepdims{"keepdims", int64_t{keep}};
  if (options_.opset < 18) return graph_.node("ReduceMean", {x}, {{"axes", Ints{axis}}, keepdims});
  return graph_.node("ReduceMean", {x, graph_.constant(Ints{axis})}, {keepdims});
}

// weight [out, in] → [in, out].  An int8 weight stays one: its scales are of the output channels.
std::string Lowering::transposed_weight(const Tensor& weight) {
  const QuantizedTensor* const quantized = weight.quantized();
  if (!quantized) return value_of(weight.to(DType::f32).transpose(0, 1));
  const std::string name = name_of_constant(weight);
  const auto dequantized = [&](const QuantizedTensor& part, const std::string& suffix) {
    const std::string values = graph_.constant(part.values.transpose(0, 1), name + suffix);
    const std::string scales = graph_.constant(part.scales, name + suffix + "_scale");
    return graph_.node("DequantizeLinear", {values, scales}, {{"axis", int64_t{1}}});
  };
  const std::string values = dequantized(*quantized, "");
  if (!quantized->correction) return values;
  return graph_.node("Add", {values, dequantized(*quantized->correction, "_correction")});
}

std::string Lowering::linear(const ops::RecordedOperation& recorded) {
  const Tensor &x = recorded.inputs[0], &weight = recorded.inputs[1], &bias = recorded.inputs[2];
  const kernels::Activation activation = recorded.operation->activation;
  if (const auto other = linears_.find(x.storage().get()); other != linears_.end())
    return ops::onnx_activation(graph_, activation, other->second(weight, bias));
  std::string y = matmul(x, weight);
  if (bias.defined()) {
    const Sum sum{y, value_of(bias)};
    y = graph_.node("Add", {sum.x, sum.bias});
    sums_[y] = sum;
  }
  return ops::onnx_activation(graph_, activation, y);
}

std::string Lowering::cat(const ops::RecordedOperation& recorded) {
  std::vector<std::string> parts;
  for (const Tensor& input : recorded.inputs) parts.push_back(full_value_of(input));
  return graph_.concat(parts, recorded.operation->axis);
}

}  // namespace vitrail::onnx
