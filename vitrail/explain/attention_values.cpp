// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/attention_values_internal.h"

#include <algorithm>
#include <cmath>

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

double row_sum_deviation(const Tensor& weights) {
  const Tensor rows = weights.contiguous();
  const int64_t columns = rows.size(-1);
  double deviation = 0;
  for (int64_t row = 0; row < rows.numel() / columns; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += static_cast<double>(rows.data<float>()[row * columns + i]);
    deviation = std::max(deviation, std::fabs(sum - 1));
  }
  return deviation;
}

}  // namespace vitrail::explain
