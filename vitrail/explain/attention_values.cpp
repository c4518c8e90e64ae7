// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/explain/attention_values_internal.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

namespace vitrail::explain {

double attention_scale(const models::VisionTransformerConfig& config) {
  const int64_t head_dim = config.head_dim.value_or(config.embed_dim / config.num_heads);
  return config.qk_scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& bias, double scale) {
  const Tensor products = ops::matmul(q.contiguous(), k.transpose(-2, -1).contiguous());
  const Tensor scores = ops::mul(products, Tensor::full({1}, scale));
  return bias.defined() ? ops::add(scores, bias.contiguous()) : scores;
}

}  // namespace vitrail::explain
