// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/contrastive/contrastive_loss_internal.h"

#include <numeric>

#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/l2_normalize.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"

namespace vitrail::train {

Tensor contrastive_loss(const Tensor& images, const Tensor& texts, const Tensor& logit_scale, const Tensor& logit_bias,
                        models::DualLoss loss) {
  const Tensor x = ops::l2_normalize(images), y = ops::l2_normalize(texts), scale = ops::exp(logit_scale);
  std::vector<int64_t> own(static_cast<size_t>(x.size(0)));
  std::iota(own.begin(), own.end(), 0);
  const Tensor labels = Tensor::from<int64_t>({x.size(0)}, own);
  const auto logits = [&](const Tensor& a, const Tensor& b) { return ops::mul(ops::linear(a, b, {}), scale); };
  if (loss == models::DualLoss::sigmoid)
    return ops::bce_with_logits(ops::add(logits(x, y), logit_bias), labels, {.sum_classes = true});
  return ops::weighted_sum({ops::cross_entropy(logits(x, y), labels), ops::cross_entropy(logits(y, x), labels)},
                           {0.5, 0.5});
}

}  // namespace vitrail::train
