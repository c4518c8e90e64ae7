// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/ops/layout.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {

// The patches of tokens [B, prefix + rows·columns, D] as a map [B, rows, columns, D].
inline Tensor patch_map(const Tensor& tokens, int64_t rows, int64_t columns) {
  const int64_t count = rows * columns;
  return ops::contiguous(tokens.narrow(1, tokens.size(1) - count, count))
      .view({tokens.size(0), rows, columns, tokens.size(2)});
}

// The maps of several blocks, their channels beside each other.
inline Tensor patch_map(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) {
  std::vector<Tensor> maps;
  for (const Tensor& each : tokens) maps.push_back(patch_map(each, rows, columns));
  return maps.size() == 1 ? maps.front() : ops::cat(maps, 3);
}

}  // namespace vitrail::models
