// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::anomaly {

// The patches that show the object (Damm et al. 2024, "AnomalyDINO", section 3.2): those whose score of the first
// principal component is above 10, or below −10 if the former are at most 35 % of the inner 60 % × 60 % of the grid.
// Then a dilation and a closing by 3 × 3 patches, where those beyond the grid do not count.  The authors' program
// filters the patches in one row instead, by the neighbours left and right alone.
//
// grid: features [rows, columns, D], or [layers, rows, columns, D], as the model gives them.  Returns 0 or 1 for each
// patch; nothing if there is no such patch.
std::vector<uint8_t> foreground_of(const Tensor& grid);

}  // namespace vitrail::anomaly
