// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/attention.h"

#include <type_traits>

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/operation.h"
#include "vitrail/ops/precision.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.shape() == k.shape() && q.size(0) == k.size(0) &&
                    q.size(1) == k.size(1) && q.size(3) == k.size(3);
  if (!fits) {
    throw Error("attention", "q [B, H, T, d], k and v [B, H, S, d]", str(q.shape(), ", ", k.shape(), ", ", v.shape()));
  }
  if (!bias.defined()) return;
  const Shape scores{q.size(0), q.size(1), q.size(2), k.size(2)};
  if (!is_floating(bias.dtype()) || !(broadcast_shapes(scores, bias.shape(), "attention") == scores)) {
    throw Error("attention", str("a floating bias that broadcasts to ", scores),
                str(name_of(bias.dtype()), " ", bias.shape()));
  }
}

// A tensor [B, H, N, d] as the kernel's argument.
template <class T>
kernels::HeadView<T> head_view(const Tensor& t) {
  return {t.data<std::remove_const_t<T>>(), t.strides()[0], t.strides()[1], t.strides()[2]};
}

// A view [B, H, N, d] as the kernel's argument.
template <class T>
kernels::HeadView<T> head_view(const View<T>& heads) {
  const Shape& strides = heads.tensor->strides();
  return {heads.data, strides[0], strides[1], strides[2]};
}

// [B, N, H·d] → [B, H, N, d], as a view.
Tensor heads_of(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).permute({0, 2, 1, 3});
}

// The dtype of the kernel's operands for GEMMs in gemm_dtype().
DType operand_dtype(DType gemm) {
  const bool multiplied = kernels::multiplies_bf16() && kernels::attention_multiplies_bf16();
  return gemm == DType::bf16 && multiplied ? DType::bf16 : DType::f32;
}

// The kernel needs a contiguous last axis, which views of a fused projection have.
Tensor with_dense_rows(const Tensor& t, DType dtype) {
  const Tensor f = converted(t.detach(), dtype);
  return f.strides()[3] == 1 || f.size(3) == 1 ? f : f.contiguous();
}

// Expands the bias to the shape of the scores, with a contiguous last axis.
Tensor expanded_bias(const Tensor& bias, const Shape& scores) {
  if (!bias.defined()) return {};
  const Tensor expanded = bias.detach().to(DType::f32).contiguous().expand(scores);
  return expanded.strides()[3] == 1 || scores[3] == 1 ? expanded : expanded.contiguous();
}

// The detached tensor, rounded to bf16 for GEMMs in bf16.
Tensor rounded(const Tensor& t, DType gemm) { return gemm == DType::bf16 ? converted(t.detach(), gemm) : t.detach(); }

// The operands of the forward and backward kernels.
struct Operands {
  Tensor q, k, v;  // operand_dtype()
  Tensor bias;     // f32, expanded to [B, H, T, S]; or undefined
  double scale;
  kernels::Precision precision;

  Operands(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& given_bias, double factor,
           DType gemm)
      : q(with_dense_rows(query, operand_dtype(gemm))),
        k(with_dense_rows(key, operand_dtype(gemm))),
        v(with_dense_rows(value, operand_dtype(gemm))),
        scale(factor),
        precision(gemm == DType::bf16 ? kernels::Precision::half : kernels::Precision::fp32) {
    bias = expanded_bias(given_bias, {q.size(0), q.size(1), q.size(2), k.size(2)});
  }
  template <class T>
  kernels::AttentionArgsOf<T> args() const {
    kernels::AttentionArgsOf<T> args{.batch = q.size(0),
                                     .heads = q.size(1),
                                     .queries = q.size(2),
                                     .keys = k.size(2),
                                     .head_dim = q.size(3),
                                     .q = head_view<const T>(q),
                                     .k = head_view<const T>(k),
                                     .v = head_view<const T>(v),
                                     .scale = static_cast<float>(scale),
                                     .precision = precision};
    if (bias.defined()) args.bias = {bias.data<float>(), bias.strides()[0], bias.strides()[1], bias.strides()[2]};
    return args;
  }
};

// Calls visitor(T{}) with the type of the operands.
template <class Visitor>
void dispatch_operands(const Operands& operands, const Visitor& visitor) {
  if (operands.q.dtype() == DType::bf16) {
    visitor(BFloat16());
  } else {
    visitor(float());
  }
}

AttentionResult attention_forward(const Operands& operands, bool need_weights) {
  AttentionResult result;
  dispatch_operands(operands, [&](auto tag) {
    using T = decltype(tag);
    kernels::AttentionArgsOf<T> args = operands.args<T>();
    result.out = Tensor::empty({args.batch, args.queries, args.heads * args.head_dim}, operands.q.dtype());
    args.out = head_view<T>(heads_of(result.out, args.heads));
    if (need_weights) {
      result.weights = Tensor::empty({args.batch, args.heads, args.queries, args.keys});
      args.weights = result.weights.data<float>();
    }
    kernels::attention(args);
  });
  return result;
}

// Writes the gradients of q, k and v, in operand_dtype().  Returns the gradient of the scores [B, H, T, S] for the
// bias, if `for_bias`.
Tensor attention_backward(const Operands& operands, const Tensor& grad, const Tensor& grad_q, const Tensor& grad_k,
                          const Tensor& grad_v, bool for_bias) {
  const Tensor dense = prepared(grad, operands.q.dtype());
  Tensor grad_scores;
  dispatch_operands(operands, [&](auto tag) {
    using T = decltype(tag);
    const kernels::AttentionArgsOf<T> args = operands.args<T>();
    kernels::AttentionGradArgsOf<T> grads{.forward = args,
                                          .grad = head_view<const T>(heads_of(dense, args.heads)),
                                          .grad_q = head_view<T>(grad_q),
                                          .grad_k = head_view<T>(grad_k),
                                          .grad_v = head_view<T>(grad_v)};
    if (for_bias) {
      grad_scores = Tensor::empty({args.batch, args.heads, args.queries, args.keys});
      grads.grad_scores = grad_scores.data<float>();
    }
    kernels::attention_backward(grads);
  });
  return grad_scores;
}

// The formula in differentiable operations, for f64.
AttentionResult attention_reference(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                    const Tensor& bias) {
  Tensor scores = mul(matmul(q, k.transpose(2, 3)), Tensor::full({1}, scale, q.dtype()));
  if (bias.defined()) scores = add(scores, bias.to(q.dtype()));
  const Tensor weights = softmax(scores);
  return {merge_heads(matmul(weights, v)), weights.detach()};
}

// The step of a compiled program: in: q, k, v, [bias]; out: the heads, merged, and optionally the weights.
void attention_step(std::span<const View<const float>> in, std::span<const View<float>> out, double scale,
                    kernels::Precision precision) {
  const Tensor &q = *in[0].tensor, &k = *in[1].tensor;
  const Shape& merged = out[0].tensor->strides();
  kernels::AttentionArgs args{.batch = q.size(0),
                              .heads = q.size(1),
                              .queries = q.size(2),
                              .keys = k.size(2),
                              .head_dim = q.size(3),
                              .q = head_view(in[0]),
                              .k = head_view(in[1]),
                              .v = head_view(in[2]),
                              .out = {out[0].data, merged[0], q.size(3), merged[1]},
                              .scale = static_cast<float>(scale),
                              .precision = precision};
  if (in[3].data) {
    const Shape strides = in[3].tensor->expand({args.batch, args.heads, args.queries, args.keys}).strides();
    args.bias = {in[3].data, strides[0], strides[1], strides[2]};
  }
  if (out.size() > 1) args.weights = out[1].data;
  kernels::attention(args);
}

// softmax(scale · q kᵀ + bias) v, heads merged: [B, H, T, d] → [B, T, H·d]
std::string onnx_attention(OnnxValues& onnx, const std::vector<Tensor>& in, const std::vector<Tensor>& out,
                           double scale) {
  OnnxGraph& graph = onnx.graph();
  const std::string scaled = graph.node("Mul", {onnx.value_of(in[0]), graph.scalar(scale)});
  std::string scores = graph.node("MatMul", {scaled, onnx.value_of(in[1].transpose(2, 3))});
  if (in[3].defined()) scores = graph.node("Add", {scores, onnx.value_of(in[3])});
  const std::string weights = graph.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (out.size() > 1) onnx.bind(out[1], weights);
  const std::string heads = graph.transpose(graph.node("MatMul", {weights, onnx.value_of(in[2])}), {0, 2, 1, 3});
  return graph.reshape(heads, {0, 0, in[0].size(1) * in[0].size(3)});  // 0: as it was
}

AttentionResult recorded_attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias,
                                   bool need_weights) {
  using In = std::span<const View<const float>>;
  using Out = std::span<const View<float>>;
  Operation operation{
      .name = "attention",
      .kind = OpKind::attention,
      .shape = {q.size(0), q.size(2), q.size(1) * q.size(3)},
      .kernel = [scale](In in, Out out) { attention_step(in, out, scale, kernels::Precision::fp32); },
      .half_kernel = [scale](In in, Out out) { attention_step(in, out, scale, kernels::Precision::half); },
      .layout = with_contiguous_last_axis,
      .flops = 4 * static_cast<double>(q.numel()) * static_cast<double>(k.size(2)),
      .text = str("attention heads=", q.size(1)),
      .keeps_token_order = true,  // a row per query
      .onnx = [scale](OnnxValues& onnx, const auto& in,
                      const auto& out) { return onnx_attention(onnx, in, out, scale); }};
  if (need_weights) operation.further_results = {{{q.size(0), q.size(1), q.size(2), k.size(2)}}};
  const std::vector<Tensor> results = recorded(std::move(operation), {q, k, v, bias});
  return {results[0], need_weights ? results[1] : Tensor()};
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias,
                          bool need_weights) {
  check_attention(q, k, v, bias);
  if (symbolic({q, k, v})) return recorded_attention(q, k, v, scale, bias, need_weights);
  if (compute_dtype(q, "attention") == DType::f64) {
    AttentionResult result = attention_reference(q, k, v, scale, bias);
    if (!need_weights) result.weights = {};
    return result;
  }
  const DType gemm = gemm_dtype(q, "attention"), out_dtype = gemm == DType::bf16 ? gemm : q.dtype();
  const Operands operands(rounded(q, gemm), rounded(k, gemm), rounded(v, gemm), bias, scale, gemm);
  AttentionResult result = attention_forward(operands, need_weights);
  result.out = converted(result.out, out_dtype);
  if (need_weights) result.weights = result.weights.to(out_dtype);
  if (autograd::recording({q, k, v, bias})) {
    const bool for_bias = bias.defined() && autograd::requires_grad(bias);
    const Shape bias_shape = for_bias ? bias.shape() : Shape{};
    autograd::record(result.out, "attention", {q, k, v, bias}, [operands, for_bias, bias_shape](const Tensor& grad) {
      const DType dtype = operands.q.dtype();
      const Tensor grad_q = Tensor::empty(operands.q.shape(), dtype), grad_k = Tensor::empty(operands.k.shape(), dtype),
                   grad_v = Tensor::empty(operands.v.shape(), dtype);
      const Tensor grad_scores = attention_backward(operands, grad, grad_q, grad_k, grad_v, for_bias);
      return std::vector<Tensor>{grad_q, grad_k, grad_v, for_bias ? reduced_to(grad_scores, bias_shape) : Tensor()};
    });
  }
  return result;
}

Tensor self_attention(const Tensor& qkv, int64_t heads, double scale, int64_t num_queries) {
  if (qkv.rank() != 3 || heads < 1 || qkv.size(2) % (3 * heads) != 0) {
    throw Error("self_attention", str("qkv [B, N, 3·", heads, "·d]"), qkv.shape().to_string());
  }
  if (num_queries < 0 || num_queries > qkv.size(1)) {
    throw Error("self_attention", str("0 to ", qkv.size(1), " queries"), str(num_queries));
  }
  const Shape parts{qkv.size(0), qkv.size(1), 3, heads, qkv.size(2) / (3 * heads)};
  // [B, N, 3, H, d] → the i-th of 3 × [B, H, N, d]
  auto part = [parts, num_queries](const Tensor& t, int i) {
    const Tensor all = t.view(parts).select(2, i).permute({0, 2, 1, 3});
    return i == 0 && num_queries > 0 ? all.narrow(2, 0, num_queries) : all;
  };
  if (!autograd::recording({qkv}) || compute_dtype(qkv, "attention") == DType::f64) {
    return attention(part(qkv, 0), part(qkv, 1), part(qkv, 2), scale).out;
  }
  const Tensor saved = rounded(qkv, gemm_dtype(qkv, "attention")).contiguous();
  auto operands_of = [part, scale](const Tensor& t) {
    const Tensor dense = converted(t, operand_dtype(t.dtype()));
    return Operands(part(dense, 0), part(dense, 1), part(dense, 2), {}, scale, t.dtype());
  };
  Tensor out = converted(attention_forward(operands_of(saved), false).out, saved.dtype());
  const bool all_queries = num_queries == 0 || num_queries == qkv.size(1);
  autograd::record(out, "self_attention", {qkv}, [operands_of, part, saved, all_queries](const Tensor& grad) {
    const Operands operands = operands_of(saved);
    const DType dtype = operands.q.dtype();
    // The gradient of a query that is not computed is 0.
    const Tensor grad_qkv = all_queries ? Tensor::empty(saved.shape(), dtype) : Tensor::zeros(saved.shape(), dtype);
    attention_backward(operands, grad, part(grad_qkv, 0), part(grad_qkv, 1), part(grad_qkv, 2), false);
    return std::vector<Tensor>{grad_qkv};
  });
  return out;
}

Tensor merge_heads(const Tensor& x) {
  const Tensor tokens = contiguous(x.permute({0, 2, 1, 3}));  // [B, H, N, d] → [B, N, H, d]
  return tokens.view({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

}  // namespace vitrail::ops
