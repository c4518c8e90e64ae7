// SPDX-License-Identifier: Apache-2.0
#pragma once
// Partition of the parameters into chunks for parallel passes.  It depends only on their sizes, so that results do not
// depend on the number of threads.
#include <algorithm>
#include <vector>

#include "vitrail/optim/optimizer.h"

namespace vitrail::optim {

// 16 Ki elements: AdamW's four arrays (w, g, m, v) then have 256 KiB in f32, half of a small L2 cache.  A model of a
// million weights still has enough chunks for every core, and a chunk takes longer than waking a thread.
constexpr int64_t kChunkElements = int64_t{16} << 10;

inline std::vector<Chunk> make_chunks(const std::vector<Parameter>& parameters) {
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
