#include "vitrail/ops/attention.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/attention.h"
#include "vitrail/ops/dispatch.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/precision.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

void check(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
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

// A [B, H, N, d] tensor as the kernel takes it.
template <class T>
kernels::HeadView<T> head_view(const Tensor& t) {
  return {t.data<float>(), t.strides()[0], t.strides()[1], t.strides()[2]};
}

// [B, N, H·d] seen as [B, H, N, d].
Tensor heads_of(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).permute({0, 2, 1, 3});
}

// The last axis must be contiguous for the kernel; a view of a fused projection is.
Tensor with_dense_rows(const Tensor& t) {
  const Tensor f = t.detach().to(DType::f32);
  return f.strides()[3] == 1 || f.size(3) == 1 ? f : f.contiguous();
}

Tensor spread_bias(const Tensor& bias, const Shape& scores) {
  if (!bias.defined()) return {};
  const Tensor spread = bias.detach().to(DType::f32).contiguous().expand(scores);
  return spread.strides()[3] == 1 || scores[3] == 1 ? spread : spread.contiguous();
}

// Without its place in the graph; rounded where the precision is bf16.
Tensor rounded(const Tensor& t, DType product) { return product == DType::bf16 ? t.detach().to(product) : t.detach(); }

// What forward and backward both take.
struct Operands {
  Tensor q, k, v, bias;  // f32; bias [B, H, T, S] by strides of 0, or undefined
  double scale;

  Operands(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& given_bias, double factor)
      : q(with_dense_rows(query)), k(with_dense_rows(key)), v(with_dense_rows(value)), scale(factor) {
    bias = spread_bias(given_bias, {q.size(0), q.size(1), q.size(2), k.size(2)});
  }
  kernels::AttentionArgs args() const {
    kernels::AttentionArgs args{.batch = q.size(0),
                                .heads = q.size(1),
                                .queries = q.size(2),
                                .keys = k.size(2),
                                .head_dim = q.size(3),
                                .q = head_view<const float>(q),
                                .k = head_view<const float>(k),
                                .v = head_view<const float>(v),
                                .scale = static_cast<float>(scale)};
    if (bias.defined()) args.bias = {bias.data<float>(), bias.strides()[0], bias.strides()[1], bias.strides()[2]};
    return args;
  }
};

AttentionResult attention_forward(const Operands& operands, bool need_weights) {
  kernels::AttentionArgs args = operands.args();
  AttentionResult result;
  result.out = Tensor::empty({args.batch, args.queries, args.heads * args.head_dim});
  args.out = head_view<float>(heads_of(result.out, args.heads));
  if (need_weights) {
    result.weights = Tensor::empty({args.batch, args.heads, args.queries, args.keys});
    args.weights = result.weights.data<float>();
  }
  kernels::attention(args);
  return result;
}

// Writes the gradients of q, k and v; of the bias the scores' gradient [B, H, T, S] when asked for.
Tensor attention_backward(const Operands& operands, const Tensor& grad, const Tensor& grad_q, const Tensor& grad_k,
                          const Tensor& grad_v, bool for_bias) {
  const kernels::AttentionArgs args = operands.args();
  const Tensor dense = prepared(grad, DType::f32);
  kernels::AttentionGradArgs grads{.forward = args,
                                   .grad = head_view<const float>(heads_of(dense, args.heads)),
                                   .grad_q = head_view<float>(grad_q),
                                   .grad_k = head_view<float>(grad_k),
                                   .grad_v = head_view<float>(grad_v)};
  Tensor grad_scores;
  if (for_bias) {
    grad_scores = Tensor::empty({args.batch, args.heads, args.queries, args.keys});
    grads.grad_scores = grad_scores.data<float>();
  }
  kernels::attention_backward(grads);
  return grad_scores;
}

// f64: the formula, step by step; each step is differentiable.
AttentionResult attention_reference(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                    const Tensor& bias) {
  Tensor scores = mul(matmul(q, k.transpose(2, 3)), Tensor::full({1}, scale, q.dtype()));
  if (bias.defined()) scores = add(scores, bias.to(q.dtype()));
  const Tensor weights = softmax(scores);
  return {merge_heads(matmul(weights, v)), weights.detach()};
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias,
                          bool need_weights) {
  check(q, k, v, bias);
  if (symbolic({&q, &k, &v})) {
    AttentionResult result;
    result.out = symbolic_result({q.size(0), q.size(2), q.size(1) * q.size(3)}, q.dtype());
    if (need_weights) result.weights = symbolic_result({q.size(0), q.size(1), q.size(2), k.size(2)}, q.dtype());
    record(OpKind::attention, {q, k, v, bias}, {result.out, result.weights}, {.scale = scale});
    return result;
  }
  if (compute_dtype(q, "attention") == DType::f64) {
    AttentionResult result = attention_reference(q, k, v, scale, bias);
    if (!need_weights) result.weights = {};
    return result;
  }
  const DType product = product_dtype(q, "attention"), out_dtype = product == DType::bf16 ? product : q.dtype();
  const Operands operands(rounded(q, product), rounded(k, product), rounded(v, product), bias, scale);
  AttentionResult result = attention_forward(operands, need_weights);
  result.out = result.out.to(out_dtype);
  if (need_weights) result.weights = result.weights.to(out_dtype);
  if (autograd::recording({q, k, v, bias})) {
    const bool for_bias = bias.defined() && autograd::requires_grad(bias);
    const Shape bias_shape = for_bias ? bias.shape() : Shape{};
    autograd::record(result.out, "attention", {q, k, v, bias}, [operands, for_bias, bias_shape](const Tensor& grad) {
      const Tensor grad_q = Tensor::empty(operands.q.shape()), grad_k = Tensor::empty(operands.k.shape()),
                   grad_v = Tensor::empty(operands.v.shape());
      const Tensor grad_scores = attention_backward(operands, grad, grad_q, grad_k, grad_v, for_bias);
      return std::vector<Tensor>{grad_q, grad_k, grad_v, for_bias ? reduced_to(grad_scores, bias_shape) : Tensor()};
    });
  }
  return result;
}

Tensor self_attention(const Tensor& qkv, int64_t heads, double scale) {
  if (qkv.rank() != 3 || heads < 1 || qkv.size(2) % (3 * heads) != 0) {
    throw Error("self_attention", str("qkv [B, N, 3·", heads, "·d]"), qkv.shape().to_string());
  }
  const Shape parts{qkv.size(0), qkv.size(1), 3, heads, qkv.size(2) / (3 * heads)};
  // [B, N, 3, H, d] → the i-th of 3 × [B, H, N, d]
  auto part = [parts](const Tensor& whole, int i) { return whole.view(parts).select(2, i).permute({0, 2, 1, 3}); };
  if (!autograd::recording({qkv}) || compute_dtype(qkv, "attention") == DType::f64) {
    return attention(part(qkv, 0), part(qkv, 1), part(qkv, 2), scale).out;
  }
  const Tensor kept = rounded(qkv, product_dtype(qkv, "attention")).contiguous();
  auto operands = [part, scale](const Tensor& whole) {
    const Tensor dense = whole.to(DType::f32);
    return Operands(part(dense, 0), part(dense, 1), part(dense, 2), {}, scale);
  };
  Tensor out = attention_forward(operands(kept), false).out.to(kept.dtype());
  autograd::record(out, "self_attention", {qkv}, [operands, part, kept](const Tensor& grad) {
    const Tensor grad_qkv = Tensor::empty(kept.shape());
    attention_backward(operands(kept), grad, part(grad_qkv, 0), part(grad_qkv, 1), part(grad_qkv, 2), false);
    return std::vector<Tensor>{grad_qkv};
  });
  return out;
}

Tensor merge_heads(const Tensor& x) {
  const Tensor tokens = contiguous(x.permute({0, 2, 1, 3}));  // [B, H, N, d] → [B, N, H, d]
  return tokens.view({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

}  // namespace vitrail::ops
