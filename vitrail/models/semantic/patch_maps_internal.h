// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/ops/layout.h"

namespace vitrail::models {

// The patches of tokens [B, prefix + rows·columns, D] as a map [B, rows, columns, D].
inline Tensor patch_map(const Tensor& tokens, int64_t rows, int64_t columns) {
  const int64_t count = rows * columns;
  return ops::contiguous(tokens.narrow(1, tokens.size(1) - count, count))
      .view({tokens.size(0), rows, columns, tokens.size(2)});
}

}  // namespace vitrail::models
