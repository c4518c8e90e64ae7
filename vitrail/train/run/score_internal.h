// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order in which weights are preferred.

namespace vitrail::train {

// Results on the held-out images.
struct Score {
  double top1 = -1;  // fraction; −1: none yet
  double loss = 0;   // mean cross-entropy; may be NaN
};

// Whether `a` is better than `b`: a lower loss, or an equal one with a higher top-1 accuracy.  NaN is the highest loss.
// The loss comes first, because few held-out images give only few values of the accuracy, which differ by chance.
bool better(const Score& a, const Score& b);

}  // namespace vitrail::train
