// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/emitter_internal.h"

#include <algorithm>
#include <array>

#include "vitrail/base/error.h"
#include "vitrail/infer/step_kernel_internal.h"
#include "vitrail/ops/row_loops_internal.h"

namespace vitrail::infer {
namespace {

using ops::OpKind;

// Rows of a tensor whose leading axes are evenly spaced in memory.
struct Rows {
  int64_t rows, cols, ld;
};
Rows rows_of(const Tensor& tensor) {
  const int64_t cols = tensor.size(-1);
  const Tensor flat = tensor.view({-1, cols});
  return {flat.size(0), cols, flat.strides()[0]};
}

double fp32_bytes(const Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.numel()) * sizeof(float) : 0;
}

// With what is fused into the layer, and the shape of its weight.
std::string linear_text(const FusedOperation& item, const std::string& name) {
  const kernels::Activation act = item.op.operation->activation;
  return str(name, act == kernels::Activation::none ? "" : str("+", name_of(act)),
             item.fused_residual() ? (item.scale.defined() ? "+scale+residual" : "+residual") : "", " ",
             item.op.inputs[1].shape());
}

// The tensors as a kernel sees them, with the addresses of a run.
template <class T, size_t N>
std::array<ops::View<T>, N> views_of(const std::vector<Operand>& operands, const Frame& frame) {
  std::array<ops::View<T>, N> views;
  std::ranges::transform(operands, views.begin(), [&frame](const Operand& each) -> ops::View<T> {
    return {each.at(frame), &each.tensor};
  });
  return views;
}

}  // namespace

void Emitter::emit(const FusedOperation& item) {
  if (item.unfolds()) return convolution(item);
  if (item.op.kind() == OpKind::linear) return linear(item);
  if (item.op.kind() == OpKind::cat) return cat(item.op);
  call_kernel(item.op);
}

Operand Emitter::operand(const Tensor& tensor) const {
  if (!tensor.defined()) return {};
  if (tensor.is_meta() && tensor.dtype() != DType::f32) {
    throw Error("compile", "f32 operands (integer inputs are for embedding)", name_of(tensor.dtype()));
  }
  if (const auto input = plan_.input_of(tensor)) return {tensor, Operand::Place::input, 0, *input};
  if (plan_.holds(tensor)) return {tensor, Operand::Place::workspace, plan_.offset_of(tensor)};
  if (tensor.is_meta()) {
    throw Error("compile", "operands that are inputs, results of recorded operations or constants",
                str(tensor.shape(), ": not recorded, or the weight of a packed layer (see retained_layers)"));
  }
  weights_.retain(tensor);
  return {tensor.to(DType::f32), Operand::Place::constant, 0};
}
Operand Emitter::integers(const Tensor& tensor, const std::string& reader) const {
  const auto input = plan_.input_of(tensor);
  if (!input || tensor.dtype() != DType::i64 || !tensor.is_contiguous()) {
    throw Error("compile", "an " + reader + " of ids that are an input of the function", tensor.shape().to_string());
  }
  return {tensor, Operand::Place::input, 0, *input};
}
Operand Emitter::parameter(const Tensor& tensor) const {
  return tensor.defined() ? operand(tensor.contiguous()) : Operand{};
}

std::string Emitter::name(const Tensor& tensor) const {
  if (plan_.input_of(tensor)) return "input " + tensor.shape().to_string();
  if (!plan_.holds(tensor)) return "constant " + tensor.shape().to_string();
  return str("%", plan_.number_of(tensor), " ", tensor.shape());
}
Step& Emitter::add(const ops::RecordedOperation& op, const std::string& what, std::function<void(const Frame&)> run) {
  std::string text = what;
  double bytes = 0;
  for (const Tensor& input : op.inputs) {
    if (!input.defined()) continue;
    bytes += fp32_bytes(input);
    if (plan_.holds(input) || plan_.input_of(input)) text += " " + name(input);
  }
  text += " →";
  for (const Tensor& output : op.outputs) {
    if (!output.defined()) continue;
    bytes += fp32_bytes(output);
    text += " " + name(output);
  }
  const ops::Operation& operation = *op.operation;
  if (operation.bytes > 0) bytes = operation.bytes;
  return steps_.emplace_back(
      Step{std::move(text), operation.flops, bytes, kernel_of(operation, options_.attention), std::move(run)});
}

void Emitter::linear(const FusedOperation& item) {
  const ops::RecordedOperation& op = item.op;
  const PackedWeights::Packed weight = weights_.get(op.inputs[1], op.inputs[2]);
  const auto& packed = weight.weight;
  const Operand x = operand(op.inputs[0]), y = operand(op.outputs[0]), residual = operand(item.residual),
                scale = parameter(item.scale);
  const Rows in = rows_of(x.tensor), out = rows_of(y.tensor);
  const int64_t residual_ld = item.fused_residual() ? rows_of(residual.tensor).ld : 0;
  const kernels::Activation act = op.operation->activation;
  packed->prepare(in.rows, in.ld, out.ld);
  const auto tokens = token_rows_.of(op.inputs[0]);
  kernels::LinearRows rows{.count = in.rows, .correction = {.error = weight.correction.get()}};
  if (tokens) {
    if (tokens->roles.class_token) rows.two_term.stride = tokens->tokens;
    rows.correction.group_rows = tokens->tokens;
    rows.correction.individual_rows = tokens->roles.head_tokens;
  }
  const size_t scratch_at = plan_.bytes();
  scratch_bytes_ = std::max(scratch_bytes_, packed->scratch_bytes(rows));
  // The closure owns the packed error that rows.correction points to.
  Step& step = add(op, linear_text(item, "linear"), [=, error = weight.correction](const Frame& frame) {
    packed->run({x.at(frame), in.ld}, {y.at(frame), out.ld}, rows,
                {.activation = act, .residual = {residual.at(frame), residual_ld, scale.at(frame)}},
                frame.workspace + scratch_at);
  });
  step.kernel = kernel_of(*packed);
  step.bytes += static_cast<double>(packed->packed_bytes()) - fp32_bytes(op.inputs[1]) + fp32_bytes(item.residual);
}

void Emitter::convolution(const FusedOperation& item) {
  const ops::RecordedOperation& op = item.op;
  const auto packed = weights_.convolution(op.inputs[1], op.inputs[2], item.unfold_stride);
  const Operand x = operand(op.inputs[0]), y = operand(op.outputs[0]), residual = operand(item.residual),
                scale = parameter(item.scale);
  const int64_t maps = x.tensor.size(0);
  const kernels::Neighbourhoods map{x.tensor.size(1), x.tensor.size(2), x.tensor.size(3), item.unfold_stride};
  const int64_t ld = rows_of(y.tensor).ld, residual_ld = item.fused_residual() ? rows_of(residual.tensor).ld : 0;
  const kernels::Activation act = op.operation->activation;
  const size_t scratch_at = plan_.bytes();
  scratch_bytes_ = std::max(scratch_bytes_, packed->scratch_bytes(map, maps));
  const std::string name = str("conv 3×3", map.stride > 1 ? str(" stride ", map.stride) : "");
  Step& step = add(op, linear_text(item, name), [=](const Frame& frame) {
    packed->run(x.at(frame), map, maps, {y.at(frame), ld},
                {.activation = act, .residual = {residual.at(frame), residual_ld, scale.at(frame)}},
                frame.workspace + scratch_at);
  });
  step.kernel = kernel_of(*packed);
  step.bytes += static_cast<double>(packed->packed_bytes()) - fp32_bytes(op.inputs[1]) + fp32_bytes(item.residual);
}

void Emitter::cat(const ops::RecordedOperation& op) {
  std::vector<std::pair<Operand, Operand>> copies;
  double copied_bytes = 0;
  const int axis = op.operation->axis;
  int64_t start = 0;
  for (const Tensor& part : op.inputs) {
    const int64_t length = part.size(axis);
    const Tensor slice = op.outputs[0].narrow(axis, start, length);
    start += length;
    if (part.storage() == op.outputs[0].storage()) continue;
    copies.emplace_back(operand(part), operand(slice));
    copied_bytes += fp32_bytes(slice);
  }
  Step& step = add(op, op.operation->text, [=](const Frame& f) {
    for (const auto& [from, to] : copies) ops::copy_rows(from.at(f), from.tensor, to.at(f), to.tensor);
  });
  step.bytes = 2 * copied_bytes;
}

void Emitter::call_kernel(const ops::RecordedOperation& op) {
  constexpr size_t kMax = 8;  // inputs, and results
  const ops::Operation& operation = *op.operation;
  if (op.inputs.size() > kMax || op.outputs.size() > kMax) {
    throw Error("compile", str("at most ", kMax, " inputs and outputs of ", operation.name),
                str(std::max(op.inputs.size(), op.outputs.size())));
  }
  std::vector<Operand> inputs, outputs;
  for (const Tensor& input : op.inputs) {
    inputs.push_back(inputs.size() < operation.integer_inputs ? integers(input, operation.name) : operand(input));
  }
  for (const Tensor& output : op.outputs) outputs.push_back(operand(output));
  const bool half = options_.attention == kernels::Precision::half && operation.half_kernel;
  add(op, operation.text.empty() ? operation.name : operation.text,
      [kernel = half ? operation.half_kernel : operation.kernel.f32, inputs, outputs](const Frame& f) {
        const auto in = views_of<const float, kMax>(inputs, f);
        const auto out = views_of<float, kMax>(outputs, f);
        kernel(std::span(in).first(inputs.size()), std::span(out).first(outputs.size()));
      });
}

}  // namespace vitrail::infer
