// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/train/run/score_internal.h"

namespace vitrail::train {

bool better(const Score& a, const Score& b) {
  if ((a.top1 < 0) != (b.top1 < 0)) return b.top1 < 0;
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(b.loss);
  if (!std::isnan(a.loss) && a.loss != b.loss) return a.loss < b.loss;
  return a.top1 > b.top1;
}

}  // namespace vitrail::train
