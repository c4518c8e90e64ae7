// SPDX-License-Identifier: Apache-2.0
#pragma once
// The effective rank of features (Roy & Vetterli 2007; Garrido et al. 2023, RankMe).
#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// rows f32 [n, D], n and D at least 1 → exp of the entropy of the singular values divided by their sum, from 1 to
// min(n, D); 1 for rows of zeros.  Features that have collapsed to few directions have a low rank.  Throws Error for
// values that are not finite.
double effective_rank(const Tensor& rows);

}  // namespace vitrail::analysis
