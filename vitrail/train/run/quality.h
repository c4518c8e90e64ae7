// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order in which weights are preferred.

namespace vitrail::train {

// Results on the held-out images.
struct Quality {
  double score = -1;  // the objective's first; −1: none yet
  double loss = 0;    // may be NaN
};

// Whether `a` is better than `b`: a lower loss, or an equal one with a higher score.  NaN is the highest loss.
// The loss comes first, because few held-out images give only few values of an accuracy, which differ by chance.
bool better(const Quality& a, const Quality& b);

}  // namespace vitrail::train
