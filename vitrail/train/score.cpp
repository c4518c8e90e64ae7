// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/train/score_internal.h"

namespace vitrail::train {

bool better(const Score& a, const Score& b) {
  if (a.top1 != b.top1) return a.top1 > b.top1;
  if (std::isnan(a.loss) || std::isnan(b.loss)) return !std::isnan(a.loss);
  return a.loss < b.loss;
}

}  // namespace vitrail::train
