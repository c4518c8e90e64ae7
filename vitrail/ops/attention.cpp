#include "vitrail/ops/attention.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/kernels/attention.h"
#include "vitrail/kernels/scalar.h"
#include "vitrail/kernels/softmax.h"
#include "vitrail/ops/dispatch.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

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

template <class T>
kernels::HeadView<T> head_view(const Tensor& t) {
  return {t.data<float>(), t.strides()[0], t.strides()[1], t.strides()[2]};
}

// The last axis must be contiguous for the kernel; a view of a fused projection is.
Tensor with_dense_rows(const Tensor& t) {
  const Tensor f = t.to(DType::f32);
  return f.strides()[3] == 1 || f.size(3) == 1 ? f : f.contiguous();
}

// f64: the formula, step by step.
AttentionResult attention_reference(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                    const Tensor& bias) {
  Tensor scores = mul(matmul(q, k.transpose(2, 3)), Tensor::full({1}, scale, q.dtype()));
  if (bias.defined()) scores = add(scores, bias.to(q.dtype()));
  const Tensor weights = softmax(scores);
  return {merge_heads(matmul(weights, v)), weights};
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias,
                          bool need_weights) {
  check(q, k, v, bias);
  autograd::require_no_grad("attention", {q, k, v, bias});
  const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  const Shape out_shape{batch, queries, heads * dim}, weights_shape{batch, heads, queries, keys};
  AttentionResult result;
  if (symbolic({&q, &k, &v})) {
    result.out = symbolic_result(out_shape, q.dtype());
    if (need_weights) result.weights = symbolic_result(weights_shape, q.dtype());
    record(OpKind::attention, {q, k, v, bias}, {result.out, result.weights}, {.scale = scale});
    return result;
  }
  if (compute_dtype(q, "attention") == DType::f64) {
    result = attention_reference(q, k, v, scale, bias);
    if (!need_weights) result.weights = {};
    return result;
  }
  const Tensor qf = with_dense_rows(q), kf = with_dense_rows(k), vf = with_dense_rows(v);
  result.out = Tensor::empty(out_shape);
  kernels::AttentionArgs args{.batch = batch, .heads = heads, .queries = queries, .keys = keys, .head_dim = dim};
  args.q = head_view<const float>(qf);
  args.k = head_view<const float>(kf);
  args.v = head_view<const float>(vf);
  args.out = {result.out.data<float>(), queries * heads * dim, dim, heads * dim};
  args.scale = static_cast<float>(scale);
  Tensor dense_bias;
  if (bias.defined()) {
    dense_bias = bias.to(DType::f32).contiguous();
    const Tensor spread = dense_bias.expand(weights_shape);
    if (spread.strides()[3] != 1 && keys != 1) {
      dense_bias = spread.contiguous();
    }
    const Tensor view = dense_bias.expand(weights_shape);
    args.bias = {view.data<float>(), view.strides()[0], view.strides()[1], view.strides()[2]};
  }
  if (need_weights) {
    result.weights = Tensor::empty(weights_shape);
    args.weights = result.weights.data<float>();
  }
  kernels::attention(args);
  result.out = result.out.to(q.dtype());
  if (need_weights) result.weights = result.weights.to(q.dtype());
  return result;
}

Tensor softmax(const Tensor& x) {
  autograd::require_no_grad("softmax", {x});
  const DType dtype = compute_dtype(x, "softmax");
  const Tensor xc = prepared(x, dtype);
  Tensor result = Tensor::empty(x.shape(), dtype);
  const int64_t cols = x.size(-1), rows = cols ? x.numel() / cols : 0;
  if (dtype == DType::f64) {
    kernels::scalar::softmax(xc.data<double>(), result.data<double>(), rows, cols);
  } else {
    kernels::softmax(xc.data<float>(), result.data<float>(), rows, cols);
  }
  return result.to(x.dtype());
}

Tensor merge_heads(const Tensor& x) {
  const Tensor tokens = contiguous(x.permute({0, 2, 1, 3}));  // [B, H, N, d] → [B, N, H, d]
  return tokens.view({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

}  // namespace vitrail::ops
