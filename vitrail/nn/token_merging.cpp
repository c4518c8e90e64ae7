// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/token_merging.h"

#include <algorithm>

#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/token_merging.h"

namespace vitrail::nn {

Tensor TokenMerging::merge(const Tensor& x, const Tensor& keys) {
  const int64_t merged = std::min(per_block_, ops::max_mergeable(x.size(1), prefix_));
  if (merged == 0) return x;
  if (!sizes_.defined()) patches_ = x.size(1) - prefix_;
  const ops::MergedTokens result = ops::merge_tokens(x, keys, sizes_, merged, prefix_);
  sizes_ = result.sizes;
  log_sizes_ = result.log_sizes;
  return result.x;
}

Tensor TokenMerging::key_bias() const {
  if (!log_sizes_.defined()) return {};
  return log_sizes_.view({log_sizes_.size(0), 1, 1, log_sizes_.size(1)});
}

Tensor TokenMerging::shares() const {
  if (!sizes_.defined()) return {};
  return ops::mul(sizes_, Tensor::full({1}, 1.0 / static_cast<double>(patches_)));
}

}  // namespace vitrail::nn
