// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/attention_relevance.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::analysis {
namespace {

void clamp_negative(const Tensor& tensor) {
  float* const values = tensor.data<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) values[i] = std::max(values[i], 0.0f);
}

// The rows of each head, weighted: readers [N] · x [H, N, S] → [H, S].
Tensor read_rows(const Tensor& readers, const Tensor& x) {
  const int64_t heads = x.size(0), tokens = x.size(1);
  const Tensor rows = readers.view({1, 1, tokens}).expand({heads, 1, tokens}).contiguous();
  return ops::matmul(rows, x.contiguous()).squeeze(1);
}

}  // namespace

Tensor weight_gradients(const DifferentiatedAttention& attention) {
  return ops::matmul(attention.context_gradient, attention.values.transpose(1, 2).contiguous());
}

Tensor positive_relevance(const DifferentiatedAttention& attention) {
  const Tensor products = ops::mul(weight_gradients(attention), attention.weights);
  clamp_negative(products);
  return ops::mean(products, 0);
}

Tensor gradient_attention(const std::vector<DifferentiatedAttention>& blocks) {
  if (blocks.empty()) throw Error("gradient attention", "the attention of at least one block", "none");
  const int64_t tokens = blocks.front().weights.size(1);
  Tensor relevance = Tensor::zeros({tokens, tokens});
  for (int64_t i = 0; i < tokens; ++i) relevance.data<float>()[i * tokens + i] = 1;
  for (const DifferentiatedAttention& block : blocks)
    relevance = ops::add(relevance, ops::matmul(positive_relevance(block), relevance));
  return relevance;
}

Tensor attention_grad_cam(const DifferentiatedAttention& attention, const Tensor& readers, int64_t prefix) {
  const int64_t patches = attention.weights.size(2) - prefix;
  const auto read_patches = [&](const Tensor& x) { return read_rows(readers, x).narrow(1, prefix, patches); };
  const Tensor head_weights = ops::mean(read_patches(weight_gradients(attention)), 1).unsqueeze(1);  // [H, 1]
  const Tensor map = ops::mean(ops::mul(read_patches(attention.weights), head_weights), 0);
  clamp_negative(map);
  return map;
}

}  // namespace vitrail::analysis
