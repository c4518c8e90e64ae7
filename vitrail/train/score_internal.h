// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order in which weights are preferred.

namespace vitrail::train {

// Results on the held-out images.
struct Score {
  double top1 = -1;  // fraction; −1: none yet
  double loss = 0;   // mean cross-entropy; may be NaN
};

// Whether `a` is better than `b`: a higher top-1 accuracy, or an equal one with a lower loss.  NaN is the highest loss.
bool better(const Score& a, const Score& b);

}  // namespace vitrail::train
