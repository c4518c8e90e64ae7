// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/train/run/quality.h"

namespace vitrail::train {

bool better(const Quality& a, const Quality& b) {
  if ((a.score < 0) != (b.score < 0)) return b.score < 0;
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(b.loss);
  if (!std::isnan(a.loss) && a.loss != b.loss) return a.loss < b.loss;
  return a.score > b.score;
}

}  // namespace vitrail::train
