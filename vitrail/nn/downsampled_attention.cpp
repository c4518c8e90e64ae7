// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/downsampled_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

int64_t internal_dim_of(const DownsampledAttentionConfig& config) {
  const bool fits = config.downsample_rate > 0 && config.num_heads > 0 &&
                    config.embedding_dim % config.downsample_rate == 0 &&
                    config.embedding_dim / config.downsample_rate % config.num_heads == 0;
  if (!fits) {
    throw Error("DownsampledAttention", "an internal width (embedding_dim / downsample_rate) that num_heads divides",
                str("embedding_dim ", config.embedding_dim, ", downsample_rate ", config.downsample_rate, ", ",
                    config.num_heads, " heads"));
  }
  return config.embedding_dim / config.downsample_rate;
}

// From here on, projecting the tokens costs more than the additional operations of few_queries() and few_keys().
constexpr int64_t kManyTokens = 64;

// [B, n, C] with as many keys as values; one side may have a batch of 1.
bool shapes_match(const Tensor& query, const Tensor& key, const Tensor& value) {
  const bool ranks = query.rank() == 3 && key.rank() == 3;
  const bool batches = ranks && (query.size(0) == key.size(0) || query.size(0) == 1 || key.size(0) == 1);
  return batches && query.size(2) == key.size(2) && key.shape() == value.shape();
}

// [H·d, C] → [H, d, C]
Tensor per_head(const Tensor& weight, int64_t heads) {
  return ops::contiguous(weight).view({heads, weight.size(0) / heads, weight.size(1)});
}

// [n, n]
Tensor identity_matrix(int64_t n, DType dtype) {
  std::vector<double> values(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i * n + i)] = 1;
  return Tensor::from<double>({n, n}, values).to(dtype);
}

// [B, n, H·d] → [H, B·n, d]
Tensor to_heads(const Tensor& x, int64_t heads) {
  const int64_t rows = x.size(0) * x.size(1);
  return ops::contiguous(x.view({rows, heads, x.size(2) / heads}).permute({1, 0, 2}));
}

// [H, B·n, c] → [B, H, n, c]
Tensor from_heads(const Tensor& x, int64_t batch) {
  return ops::contiguous(x.view({x.size(0), batch, x.size(1) / batch, x.size(2)}).permute({1, 0, 2, 3}));
}

}  // namespace

DownsampledAttention::DownsampledAttention(const DownsampledAttentionConfig& config, const ParamSource& params)
    : Module(params.path()),
      num_heads_(config.num_heads),
      internal_dim_(internal_dim_of(config)),
      scale_(1.0 / std::sqrt(static_cast<double>(internal_dim_ / num_heads_))),
      q_proj_(config.embedding_dim, internal_dim_, true, params.child("q_proj")),
      k_proj_(config.embedding_dim, internal_dim_, true, params.child("k_proj")),
      v_proj_(config.embedding_dim, internal_dim_, true, params.child("v_proj")),
      out_proj_(internal_dim_, config.embedding_dim, true, params.child("out_proj")) {}

// [B or 1, n, H·d] → [batch, H, n, d]
Tensor DownsampledAttention::heads_for(const Tensor& projected, int64_t batch) const {
  const Tensor heads = split_heads(projected, num_heads_);
  return heads.size(0) == 1 ? heads.expand({batch, heads.size(1), heads.size(2), heads.size(3)}) : heads;
}

Tensor DownsampledAttention::attend_projected(const Tensor& q, const Tensor& k, const Tensor& v) const {
  const int64_t batch = std::max(q.size(0), k.size(0));
  const Tensor q_heads = heads_for(q, batch), k_heads = heads_for(k, batch), v_heads = heads_for(v, batch);
  trace(*this, "q", q_heads);
  trace(*this, "k", k_heads);
  trace(*this, "v", v_heads);
  const AttentionOutput attended = attend(*this, q_heads, k_heads, v_heads, scale_, {}, nullptr, false);
  return traced(*this, out_proj_.forward(attended.out));
}

// A head's scores are q (K W_kᵀ)ᵀ = (q W_k) Kᵀ.  The key's bias adds the same to all scores of a query, which softmax
// ignores.  Weights sum to 1, so that the value's bias is added after the sum over the values.
Tensor DownsampledAttention::few_queries(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const int64_t batch = query.size(0), count = query.size(1), shared = key.size(0), dim = key.size(2);
  const Tensor q = ops::mul(q_proj_.forward(query), Tensor::full({1}, scale_, query.dtype()));
  const Tensor q_side = from_heads(ops::matmul(to_heads(q, num_heads_), per_head(k_proj_.weight(), num_heads_)), batch);
  const Tensor weights =
      ops::softmax(ops::matmul(q_side.view({shared, batch / shared * num_heads_ * count, dim}), key.transpose(1, 2)));
  const Tensor sums = ops::matmul(weights, value).view({batch, num_heads_, count, dim});
  const Tensor heads = ops::contiguous(sums.permute({1, 0, 2, 3})).view({num_heads_, batch * count, dim});
  const Tensor attended = ops::matmul(heads, per_head(v_proj_.weight(), num_heads_).transpose(1, 2));
  const Tensor merged = ops::contiguous(attended.permute({1, 0, 2})).view({batch, count, internal_dim_});
  return out_proj_.forward(ops::add(merged, v_proj_.bias()));
}

// A head's scores are (Q W_qᵀ + b_q) kᵀ = Q (k W_q)ᵀ + b_q kᵀ, and its part of the output is its weights times v W_oᵀ.
// Weights sum to 1 in each head, so that the output's bias is part of the values.  q_bias may be undefined.
Tensor DownsampledAttention::few_keys(const Tensor& query, const Tensor& q_weight, const Tensor& q_bias,
                                      const Tensor& key, const Tensor& value) const {
  const int64_t batch = key.size(0), count = key.size(1), cells = query.size(1), dim = query.size(2);
  const int64_t columns = num_heads_ * count, shared = query.size(0);
  const Tensor k = to_heads(ops::mul(k_proj_.forward(key), Tensor::full({1}, scale_, key.dtype())), num_heads_);
  const Tensor k_side = from_heads(ops::matmul(k, per_head(q_weight, num_heads_)), batch);
  Tensor scores = ops::matmul(query, k_side.view({shared, batch / shared * columns, dim}).transpose(1, 2));
  if (q_bias.defined()) {
    const Tensor bias = from_heads(ops::matmul(k, q_bias.view({num_heads_, internal_dim_ / num_heads_, 1})), batch);
    scores = ops::add(scores, bias.view({shared, 1, batch / shared * columns}));
  }
  Tensor weights = ops::softmax(scores.view({shared * cells, batch / shared * num_heads_, count}));
  weights = shared == batch ? weights.view({batch, cells, columns})
                            : ops::contiguous(weights.view({cells, batch, columns}).permute({1, 0, 2}));
  const Tensor out_weight = per_head(out_proj_.weight().transpose(0, 1), num_heads_);
  Tensor v_side = from_heads(ops::matmul(to_heads(v_proj_.forward(value), num_heads_), out_weight), batch);
  const Tensor share = Tensor::full({1}, 1.0 / static_cast<double>(num_heads_), value.dtype());
  v_side = ops::add(v_side.view({batch, columns, out_weight.size(2)}), ops::mul(out_proj_.bias(), share));
  return ops::matmul(weights, v_side);
}

Tensor DownsampledAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value) const {
  if (may_absorb() && !autograd::recording({query, key, value}) && shapes_match(query, key, value)) {
    // What is projected: keys and values of the many tokens, or their queries and the output.
    const int64_t keys_and_values = 2 * key.size(0), queries_and_output = query.size(0) + key.size(0);
    const int64_t width = 2 * query.size(2);
    if (key.size(1) >= kManyTokens && key.size(0) <= query.size(0) &&
        absorbing_is_cheaper(query, keys_and_values, width))
      return few_queries(query, key, value);
    if (query.size(1) >= kManyTokens && query.size(0) <= key.size(0) &&
        absorbing_is_cheaper(key, queries_and_output, width))
      return few_keys(query, q_proj_.weight(), q_proj_.bias(), key, value);
  }
  return attend_projected(project_query(query), project_key(key), project_value(value));
}

// Samples with the same keys attend as one sample with the queries of all.
Tensor DownsampledAttention::forward_projected_keys(const Tensor& query, const Tensor& k, const Tensor& v) const {
  const Tensor q = project_query(query);
  if (k.size(0) > 1 || q.size(0) == 1) return attend_projected(q, k, v);
  return attend_projected(q.view({1, q.size(0) * q.size(1), q.size(2)}), k, v).view(query.shape());
}

// Few keys absorb only the output's projection: the query's is the identity.
Tensor DownsampledAttention::forward_projected_query(const Tensor& q, const Tensor& key, const Tensor& value) const {
  const bool few = q.size(1) >= kManyTokens && q.size(0) <= key.size(0) &&
                   absorbing_is_cheaper(key, key.size(0), internal_dim_ + key.size(2));
  if (few && may_absorb() && !autograd::recording({q, key, value}))
    return few_keys(q, identity_matrix(internal_dim_, q.dtype()), {}, key, value);
  return attend_projected(q, project_key(key), project_value(value));
}

// Not in training and traces, and not where a session has packed the weights and released them.
bool DownsampledAttention::may_absorb() const {
  const std::array<Tensor, 4> weights{q_proj_.weight(), k_proj_.weight(), v_proj_.weight(), out_proj_.weight()};
  return !tracing() && std::ranges::none_of(weights, [](const Tensor& weight) {
    return weight.is_meta() || autograd::recording({weight});
  });
}

// Compares the multiplications for each of the many tokens, which are projected `projections` times otherwise.  width:
// of the operands that scores and output are computed from, together.
bool DownsampledAttention::absorbing_is_cheaper(const Tensor& few, int64_t projections, int64_t width) const {
  const int64_t samples = few.size(0), count = few.size(1), dim = few.size(2);
  const int64_t projected = projections * internal_dim_ * dim + samples * 2 * count * internal_dim_;
  return samples * num_heads_ * count * width < projected;
}

void DownsampledAttention::visit(Visitor& visitor) {
  visitor.child("q_proj", static_cast<Module&>(q_proj_));
  visitor.child("k_proj", static_cast<Module&>(k_proj_));
  visitor.child("v_proj", static_cast<Module&>(v_proj_));
  visitor.child("out_proj", static_cast<Module&>(out_proj_));
}

}  // namespace vitrail::nn
