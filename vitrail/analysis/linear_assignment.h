// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace vitrail::analysis {

// The linear assignment of least total cost: each row gets one column of its own, or each column one row if there are
// fewer columns.  costs [rows, columns], finite.  The column of each row, −1 without one.  Of assignments with the same
// cost, any.  Time grows with min(rows, columns)² · max(rows, columns).
// Source: the shortest augmenting paths of Jonker and Volgenant 1987, as scipy.optimize.linear_sum_assignment (Crouse
// 2016, "On implementing 2D rectangular assignment algorithms").  Throws Error for another number of costs and for
// those that are not finite.
std::vector<int64_t> linear_assignment(std::span<const double> costs, int64_t rows, int64_t columns);

}  // namespace vitrail::analysis
