// SPDX-License-Identifier: Apache-2.0
#pragma once
// The patches of a bank that stand for all.
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::anomaly {

// Greedy k-center (Sener & Savarese 2018; Roth et al. 2022, algorithm 1): begins with a random row of `rows` [n, D] and
// adds the row that is farthest from those chosen, `count` in all (1 to n).  Distances are Euclidean, of a Gaussian
// random projection to 128 dimensions where D is larger.  Returns their indices, ascending.  The result depends on the
// seed alone.  Throws Error for another count.
std::vector<int64_t> coreset(const Tensor& rows, int64_t count, int64_t seed);

}  // namespace vitrail::anomaly
