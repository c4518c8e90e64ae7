// SPDX-License-Identifier: Apache-2.0
#pragma once
// How parameters are cut for parallel passes: the cut depends on their sizes alone.
#include <vector>

#include "vitrail/optim/optimizer.h"

namespace vitrail::optim {

// 16 Ki elements: of the four streams that AdamW moves, 256 KiB in f32, a half of a small second-level cache; small
// enough that a model of a million weights keeps every core busy, and some 20 µs long, ten times what waking them
// costs.
constexpr int64_t kChunkElements = int64_t{16} << 10;

inline std::vector<Chunk> chunks_of(const std::vector<Parameter>& parameters) {
  std::vector<Chunk> chunks;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const int64_t total = parameters[p].tensor.numel();
    for (int64_t first = 0; first < total; first += kChunkElements) {
      chunks.push_back({p, first, std::min(kChunkElements, total - first)});
    }
  }
  return chunks;
}

}  // namespace vitrail::optim
