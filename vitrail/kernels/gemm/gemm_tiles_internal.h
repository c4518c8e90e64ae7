// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides a GEMM among the threads of the calling thread's loops.
#include <cstdint>

#include "vitrail/base/function_ref.h"

namespace vitrail::kernels {

// Rows [row, row + rows) and columns [column, column + columns) of the result.
struct Tile {
  int64_t row, rows, column, columns;
};

// Calls body(tile) in parallel for tiles that cover the result [m, n] of a GEMM over k.  The tiles depend only on the
// sizes and on num_threads().
void for_each_tile(int64_t m, int64_t n, int64_t k, FunctionRef<void(const Tile&)> body);

}  // namespace vitrail::kernels
