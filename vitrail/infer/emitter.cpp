// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/emitter_internal.h"

#include <algorithm>
#include <array>

#include "vitrail/base/error.h"
#include "vitrail/infer/row_loops_internal.h"
#include "vitrail/infer/step_kernel_internal.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/kernels/attention/token_merging.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/patchify.h"
#include "vitrail/kernels/rowwise/rms_norm.h"
#include "vitrail/kernels/rowwise/rotary.h"

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

// The strides of an operand [B, H, N, d].  Its address is known only when the step runs.
kernels::HeadView<const float> head_strides(const Operand& heads) {
  const Shape strides = heads.tensor.strides();
  return {nullptr, strides[0], strides[1], strides[2]};
}

}  // namespace

void Emitter::emit(const FusedOperation& item) {
  switch (item.op.kind) {
    case OpKind::linear:
      return linear(item);
    case OpKind::layer_norm:
      return layer_norm(item.op);
    case OpKind::rms_norm:
      return rms_norm(item.op);
    case OpKind::residual_add:
      return residual_add(item.op);
    case OpKind::attention:
      return attention(item.op);
    case OpKind::rotary:
      return rotary(item.op);
    case OpKind::patchify:
      return patchify(item.op);
    case OpKind::activation:
      return activation(item.op);
    case OpKind::silu_gate:
      return silu_gate(item.op);
    case OpKind::add:
      return combine(item.op, [](float a, float b) { return a + b; });
    case OpKind::mul:
      return combine(item.op, [](float a, float b) { return a * b; });
    case OpKind::cat:
      return cat(item.op);
    case OpKind::mean:
      return mean(item.op);
    case OpKind::copy:
      return copy(item.op);
    case OpKind::merge_tokens:
      return merge_tokens(item.op);
    case OpKind::embedding:
      return embedding(item.op);
    case OpKind::custom:
      return custom(item.op);
  }
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
Operand Emitter::parameter(const Tensor& tensor) const {
  return tensor.defined() ? operand(tensor.contiguous()) : Operand{};
}

std::string Emitter::name(const Tensor& tensor) const {
  if (plan_.input_of(tensor)) return "input " + tensor.shape().to_string();
  if (!plan_.holds(tensor)) return "constant " + tensor.shape().to_string();
  return str("%", plan_.number_of(tensor), " ", tensor.shape());
}
Step& Emitter::add(const ops::Operation& op, const std::string& what, std::function<void(const Frame&)> run) {
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
  return steps_.emplace_back(
      Step{std::move(text), ops::flops_of(op), bytes, kernel_of(op, options_.attention), std::move(run)});
}

void Emitter::linear(const FusedOperation& item) {
  const ops::Operation& op = item.op;
  const PackedWeights::Packed weight = weights_.get(op.inputs[1], op.inputs[2]);
  const auto& packed = weight.weight;
  const Operand x = operand(op.inputs[0]), y = operand(op.outputs[0]), residual = operand(item.residual),
                scale = parameter(item.scale);
  const Rows in = rows_of(x.tensor), out = rows_of(y.tensor);
  const int64_t residual_ld = item.fused_residual() ? rows_of(residual.tensor).ld : 0;
  const kernels::Activation act = op.attributes.activation;
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
  std::string what = str("linear", act == kernels::Activation::none ? "" : str("+", name_of(act)),
                         item.fused_residual() ? (item.scale.defined() ? "+scale+residual" : "+residual") : "", " ",
                         op.inputs[1].shape());
  // The closure owns the packed error that rows.correction points to.
  Step& step = add(op, what, [=, error = weight.correction](const Frame& frame) {
    packed->run({x.at(frame), in.ld}, {y.at(frame), out.ld}, rows,
                {.activation = act, .residual = {residual.at(frame), residual_ld, scale.at(frame)}},
                frame.workspace + scratch_at);
  });
  step.kernel = kernel_of(*packed);
  step.bytes += static_cast<double>(packed->packed_bytes()) - fp32_bytes(op.inputs[1]) + fp32_bytes(item.residual);
}

void Emitter::layer_norm(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), gamma = parameter(op.inputs[1]), beta = parameter(op.inputs[2]),
                y = operand(op.outputs[0]);
  const Rows in = rows_of(x.tensor), out = rows_of(y.tensor);
  const auto eps = static_cast<float>(op.attributes.eps);
  add(op, "layer_norm", [=](const Frame& f) {
    kernels::layer_norm(x.at(f), in.ld, gamma.at(f), beta.at(f), eps, y.at(f), out.ld, in.rows, in.cols);
  });
}

void Emitter::rms_norm(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), gamma = parameter(op.inputs[1]), y = operand(op.outputs[0]);
  const Rows in = rows_of(x.tensor), out = rows_of(y.tensor);
  const auto eps = static_cast<float>(op.attributes.eps);
  add(op, "rms_norm",
      [=](const Frame& f) { kernels::rms_norm(x.at(f), in.ld, gamma.at(f), eps, y.at(f), out.ld, in.rows, in.cols); });
}

void Emitter::residual_add(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0].contiguous()), y = operand(op.inputs[1].contiguous()),
                scale = parameter(op.inputs[2]), out = operand(op.outputs[0]);
  const Rows in = rows_of(x.tensor);
  add(op, "residual_add", [=](const Frame& f) {
    kernels::residual_layer_norm(x.at(f), y.at(f), scale.at(f), nullptr, nullptr, 0, out.at(f), nullptr, in.rows,
                                 in.cols);
  });
}

void Emitter::attention(const ops::Operation& op) {
  const Operand q = operand(op.inputs[0]), k = operand(op.inputs[1]), v = operand(op.inputs[2]),
                out = operand(op.outputs[0]), weights = operand(op.outputs[1]);
  kernels::AttentionArgs args;
  args.batch = q.tensor.size(0);
  args.heads = q.tensor.size(1);
  args.queries = q.tensor.size(2);
  args.keys = k.tensor.size(2);
  args.head_dim = q.tensor.size(3);
  args.scale = static_cast<float>(op.attributes.scale);
  args.precision = options_.attention;
  args.q = head_strides(q);
  args.k = head_strides(k);
  args.v = head_strides(v);
  const Operand bias = operand(
      op.inputs[3].defined() ? op.inputs[3].expand({args.batch, args.heads, args.queries, args.keys}) : Tensor());
  if (bias.tensor.defined()) {
    const Shape& strides = bias.tensor.strides();
    if (strides[3] != 1)
      throw Error("compile", "an attention bias with a contiguous last axis", op.inputs[3].shape().to_string());
    args.bias = {nullptr, strides[0], strides[1], strides[2]};
  }
  args.out = {nullptr, out.tensor.strides()[0], args.head_dim, out.tensor.strides()[1]};
  add(op, str("attention heads=", args.heads), [=](const Frame& f) {
    kernels::AttentionArgs now = args;
    now.q.data = q.at(f);
    now.k.data = k.at(f);
    now.v.data = v.at(f);
    now.bias.data = bias.at(f);
    now.out.data = out.at(f);
    now.weights = weights.at(f);
    kernels::attention(now);
  });
}

void Emitter::rotary(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), table = parameter(op.inputs[1]), y = operand(op.outputs[0]);
  const Shape &shape = x.tensor.shape(), &steps = table.tensor.strides();
  const kernels::RotaryArgs args{.batch = shape[0],
                                 .tokens = shape[1],
                                 .heads = op.attributes.heads,
                                 .head_dim = table.tensor.size(3),
                                 .prefix = shape[1] - table.tensor.size(2),
                                 .table_batch_stride = table.tensor.size(0) == 1 ? 0 : steps[0],
                                 .table_head_stride = table.tensor.size(1) == 1 ? 0 : steps[1],
                                 .pairs = op.attributes.pairs};
  add(op, str("rotary heads=", args.heads), [=](const Frame& f) {
    kernels::RotaryArgs now = args;
    now.x = x.at(f);
    now.table = table.at(f);
    now.y = y.at(f);
    kernels::rotary(now);
  });
}

void Emitter::patchify(const ops::Operation& op) {
  const Operand image = operand(op.inputs[0]), rows = operand(op.outputs[0]);
  const Shape shape = image.tensor.shape();
  const int64_t height = op.attributes.height, width = op.attributes.width;
  add(op, str("patchify ", height, "×", width), [=](const Frame& f) {
    kernels::patchify(image.at(f), shape[0], shape[1], shape[2], shape[3], height, width, rows.at(f));
  });
}

void Emitter::activation(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), y = operand(op.outputs[0]);
  const kernels::Activation act = op.attributes.activation;
  const int64_t n = x.tensor.numel();
  add(op, kernels::name_of(act), [=](const Frame& f) { kernels::activate(act, x.at(f), y.at(f), n); });
}

void Emitter::silu_gate(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), y = operand(op.outputs[0]);
  const Rows in = rows_of(x.tensor), out = rows_of(y.tensor);
  add(op, "silu_gate",
      [=](const Frame& f) { kernels::silu_gate(x.at(f), in.ld, y.at(f), out.ld, out.rows, out.cols); });
}

template <class Op>
void Emitter::combine(const ops::Operation& op, Op function) {
  const Operand a = operand(op.inputs[0]), b = operand(op.inputs[1]), to = operand(op.outputs[0]);
  add(op, name_of(op.kind),
      [=](const Frame& f) { combine_rows(a.at(f), a.tensor, b.at(f), b.tensor, to.at(f), to.tensor, function); });
}

void Emitter::cat(const ops::Operation& op) {
  std::vector<std::pair<Operand, Operand>> copies;
  double copied_bytes = 0;
  int64_t start = 0;
  for (const Tensor& part : op.inputs) {
    const int64_t length = part.size(op.attributes.axis);
    const Tensor slice = op.outputs[0].narrow(op.attributes.axis, start, length);
    start += length;
    if (part.storage() == op.outputs[0].storage()) continue;
    copies.emplace_back(operand(part), operand(slice));
    copied_bytes += fp32_bytes(slice);
  }
  Step& step = add(op, str("cat axis=", op.attributes.axis), [=](const Frame& f) {
    for (const auto& [from, to] : copies) copy_rows(from.at(f), from.tensor, to.at(f), to.tensor);
  });
  step.bytes = 2 * copied_bytes;
}

void Emitter::mean(const ops::Operation& op) {
  Operand x = operand(op.inputs[0]);
  const Operand y = operand(op.outputs[0]);
  const int axis = op.attributes.axis;
  if (x.tensor.rank() != 3 || axis != 1) {  // view x as [outer, length, inner]
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < x.tensor.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.tensor.size(i);
    x.tensor = x.tensor.view({outer, x.tensor.size(axis), inner});
  }
  if (x.tensor.strides()[2] != 1) {
    throw Error("compile", "a mean over rows with a contiguous last axis", op.inputs[0].shape().to_string());
  }
  add(op, "mean", [=](const Frame& f) { mean_rows(x.at(f), x.tensor, y.at(f)); });
}

void Emitter::copy(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), y = operand(op.outputs[0]);
  add(op, "copy", [=](const Frame& f) { copy_rows(x.at(f), x.tensor, y.at(f), y.tensor); });
}

void Emitter::merge_tokens(const ops::Operation& op) {
  const Operand x = operand(op.inputs[0]), keys = operand(op.inputs[1]), sizes = operand(op.inputs[2]),
                out = operand(op.outputs[0]), out_sizes = operand(op.outputs[1]), log_sizes = operand(op.outputs[2]);
  kernels::TokenMergingArgs args;
  args.batch = x.tensor.size(0);
  args.tokens = x.tensor.size(1);
  args.width = x.tensor.size(2);
  args.merged = op.attributes.merged;
  args.prefix = op.attributes.prefix;
  args.heads = keys.tensor.size(1);
  args.head_dim = keys.tensor.size(3);
  args.keys = head_strides(keys);
  add(op, str("merge_tokens ", args.merged), [=](const Frame& f) {
    kernels::TokenMergingArgs now = args;
    now.x = x.at(f);
    now.keys.data = keys.at(f);
    now.sizes = sizes.at(f);
    now.out = out.at(f);
    now.out_sizes = out_sizes.at(f);
    now.out_log_sizes = log_sizes.at(f);
    kernels::merge_tokens(now);
  });
}

void Emitter::embedding(const ops::Operation& op) {
  const Operand weight = operand(op.inputs[1].contiguous()), out = operand(op.outputs[0]);
  const Tensor& ids = op.inputs[0];
  const auto input = plan_.input_of(ids);
  if (!input || ids.dtype() != DType::i64 || !ids.is_contiguous()) {
    throw Error("compile", "an embedding of ids that are an input of the function", ids.shape().to_string());
  }
  const int64_t count = ids.numel(), rows = weight.tensor.size(0), cols = weight.tensor.size(1);
  Step& step = add(op, "embedding", [=, first = ids.offset(), input = *input](const Frame& f) {
    const int64_t* const id = reinterpret_cast<const int64_t*>(f.inputs[input]) + first;
    for (int64_t i = 0; i < count; ++i) {
      if (id[i] < 0 || id[i] >= rows) throw Error("embedding", str("ids from 0 to ", rows - 1), str(id[i]));
      std::copy_n(weight.at(f) + id[i] * cols, cols, out.at(f) + i * cols);
    }
  });
  step.bytes = 2 * fp32_bytes(out.tensor);  // the table is not read as a whole
}

void Emitter::custom(const ops::Operation& op) {
  constexpr size_t kMax = ops::CustomOperation::kMaxTensors;
  const auto& custom = op.attributes.custom;
  const auto operands = [&](const std::vector<Tensor>& tensors) {
    if (tensors.size() > kMax) {
      throw Error("compile", str("at most ", kMax, " inputs and outputs of ", custom->name), str(tensors.size()));
    }
    std::vector<Operand> result;
    for (const Tensor& tensor : tensors) {
      if (tensor.defined() && tensor.is_meta() && !(tensor.is_contiguous() && tensor.dtype() == DType::f32)) {
        throw Error("compile", "contiguous f32 tensors for " + custom->name,
                    str(tensor.shape(), " ", name_of(tensor.dtype()), tensor.is_contiguous() ? "" : ", strided"));
      }
      result.push_back(parameter(tensor));
    }
    return result;
  };
  const bool half = options_.attention == kernels::Precision::half && custom->compute_half;
  add(op, custom->name, [custom, half, inputs = operands(op.inputs), outputs = operands(op.outputs)](const Frame& f) {
    std::array<const float*, kMax> in;
    std::array<float*, kMax> out;
    std::transform(inputs.begin(), inputs.end(), in.begin(), [&f](const Operand& x) { return x.at(f); });
    std::transform(outputs.begin(), outputs.end(), out.begin(), [&f](const Operand& y) { return y.at(f); });
    (half ? custom->compute_half : custom->compute)(in.data(), out.data());
  });
}

}  // namespace vitrail::infer
