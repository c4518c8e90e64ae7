// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/lowering_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/onnx/view_internal.h"
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

[[noreturn]] void refuse(const std::string& operation) {
  throw Error("ONNX", "a model of operations that ONNX expresses", operation);
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

void Lowering::lower(const ops::Operation& operation) {
  if (operation.kind == ops::OpKind::custom && operation.attributes.custom->name == "unfold_3x3") {
    unfolds_.emplace(operation.outputs[0].storage().get(), operation);
  } else {
    bind(operation.outputs[0], result_of(operation));
  }
}

std::string Lowering::result_of(const ops::Operation& operation) {
  const auto input = [&](size_t i) { return value_of(operation.inputs[i]); };
  switch (operation.kind) {
    case ops::OpKind::linear:
      return linear(operation);
    case ops::OpKind::layer_norm:
      return layer_norm(operation);
    case ops::OpKind::rms_norm:
      return rms_norm(operation);
    case ops::OpKind::residual_add:
      return residual_add(operation);
    case ops::OpKind::attention:
      return attention(operation);
    case ops::OpKind::rotary:
      return rotary(operation);
    case ops::OpKind::patchify:
      return patchify(operation);
    case ops::OpKind::activation:
      return lower_activation(graph_, operation.attributes.activation, input(0));
    case ops::OpKind::silu_gate:
      return silu_gate(operation);
    case ops::OpKind::add:
      return graph_.node("Add", {input(0), input(1)});
    case ops::OpKind::mul:
      return graph_.node("Mul", {input(0), input(1)});
    case ops::OpKind::cat:
      return cat(operation);
    case ops::OpKind::mean:
      return mean(input(0), operation.attributes.axis, false);
    case ops::OpKind::copy:
      return input(0);
    case ops::OpKind::embedding:
      return embedding(operation);
    case ops::OpKind::custom:
      return custom(operation);
    case ops::OpKind::merge_tokens:
      break;
  }
  refuse(name_of(operation.kind));
}

std::string Lowering::custom(const ops::Operation& operation) {
  const std::string& name = operation.attributes.custom->name;
  const auto rule = custom_rules().find(name);
  if (rule == custom_rules().end()) refuse(name);
  return (this->*rule->second)(operation);
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

std::string Lowering::linear(const ops::Operation& operation) {
  const Tensor &x = operation.inputs[0], &weight = operation.inputs[1], &bias = operation.inputs[2];
  if (const auto unfold = unfolds_.find(x.storage().get()); unfold != unfolds_.end())
    return unfolded_linear(unfold->second, operation);
  std::string y = matmul(x, weight);
  if (bias.defined()) {
    const Sum sum{y, value_of(bias)};
    y = graph_.node("Add", {sum.x, sum.bias});
    sums_[y] = sum;
  }
  return lower_activation(graph_, operation.attributes.activation, y);
}

std::string Lowering::layer_norm(const ops::Operation& operation) {
  const Tensor &x = operation.inputs[0], &gamma = operation.inputs[1], &beta = operation.inputs[2];
  std::vector<std::string> inputs{value_of(x), constant(gamma.defined() ? gamma : Tensor::full({x.size(-1)}, 1))};
  if (beta.defined()) inputs.push_back(constant(beta));
  return graph_.node("LayerNormalization", inputs, {{"epsilon", static_cast<float>(operation.attributes.eps)}});
}

std::string Lowering::rms_norm(const ops::Operation& operation) {
  const std::string x = value_of(operation.inputs[0]);
  const std::string mean_square = mean(graph_.node("Mul", {x, x}), operation.inputs[0].rank() - 1, true);
  const std::string shifted = graph_.node("Add", {mean_square, graph_.scalar(operation.attributes.eps)});
  const std::string y = graph_.node("Div", {x, graph_.node("Sqrt", {shifted})});
  return operation.inputs[1].defined() ? graph_.node("Mul", {y, value_of(operation.inputs[1])}) : y;
}

std::string Lowering::residual_add(const ops::Operation& operation) {
  const Tensor& scale = operation.inputs[2];
  std::string branch = value_of(operation.inputs[1]);
  if (scale.defined()) branch = graph_.node("Mul", {branch, value_of(scale)});
  return graph_.node("Add", {value_of(operation.inputs[0]), branch});
}

// softmax(scale · q kᵀ + bias) v, heads merged: [B, H, T, d] → [B, T, H·d]
std::string Lowering::attention(const ops::Operation& operation) {
  const Tensor &q = operation.inputs[0], &bias = operation.inputs[3];
  const std::string scaled = graph_.node("Mul", {value_of(q), graph_.scalar(operation.attributes.scale)});
  std::string scores = graph_.node("MatMul", {scaled, value_of(operation.inputs[1].transpose(2, 3))});
  if (bias.defined()) scores = graph_.node("Add", {scores, value_of(bias)});
  const std::string weights = graph_.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (operation.outputs[1].defined()) bind(operation.outputs[1], weights);
  const std::string heads =
      graph_.transpose(graph_.node("MatMul", {weights, value_of(operation.inputs[2])}), {0, 2, 1, 3});
  return graph_.reshape(heads, {0, 0, q.size(1) * q.size(3)});  // 0: as it was
}

// image [B, C, H, W] → [B, rows · columns, C · height · width]
std::string Lowering::patchify(const ops::Operation& operation) {
  const Tensor& image = operation.inputs[0];
  const int64_t height = operation.attributes.height, width = operation.attributes.width;
  const int64_t channels = image.size(1), rows = image.size(2) / height, columns = image.size(3) / width;
  std::string x = value_of(image);
  if (rows * height != image.size(2) || columns * width != image.size(3))
    x = graph_.slice(x, {2, 3}, {0, 0}, {rows * height, columns * width});
  x = graph_.transpose(graph_.reshape(x, {-1, channels, rows, height, columns, width}), {0, 2, 4, 1, 3, 5});
  return graph_.reshape(x, {-1, rows * columns, channels * height * width});
}

std::string Lowering::silu_gate(const ops::Operation& operation) {
  const Tensor& x = operation.inputs[0];
  const int64_t half = x.size(-1) / 2;
  const std::string value = value_of(x);
  const std::string gate = graph_.slice(value, {-1}, {0}, {half});
  return graph_.node("Mul", {lower_activation(graph_, kernels::Activation::silu, gate),
                             graph_.slice(value, {-1}, {half}, {2 * half})});
}

std::string Lowering::cat(const ops::Operation& operation) {
  std::vector<std::string> parts;
  for (const Tensor& input : operation.inputs) parts.push_back(full_value_of(input));
  return graph_.concat(parts, operation.attributes.axis);
}

// ids [..] of the rows of weight [V, C] → [.., C]
std::string Lowering::embedding(const ops::Operation& operation) {
  return graph_.node("Gather", {value_of(operation.inputs[1]), value_of(operation.inputs[0])}, {{"axis", int64_t{0}}});
}

}  // namespace vitrail::onnx
