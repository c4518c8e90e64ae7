// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/unfold.h"

#include <algorithm>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
// The three taps of a row of the map are adjacent in memory.
void unfold_cell(const float* x, const Neighbourhoods& of, int64_t cell, float* y) {
  const int64_t row_of_all = cell / of.columns(), map = row_of_all / of.rows(), channels = of.channels;
  const int64_t row = row_of_all % of.rows() * of.stride, left = cell % of.columns() * of.stride - 1;
  const int64_t begin = std::max<int64_t>(left, 0), end = std::min(left + 3, of.width);
  for (int64_t v = row - 1; v <= row + 1; ++v, y += 3 * channels) {
    if (v < 0 || v >= of.height) {
      std::fill_n(y, 3 * channels, 0.0f);
      continue;
    }
    float* const inside = std::fill_n(y, (begin - left) * channels, 0.0f);
    const float* const from = x + ((map * of.height + v) * of.width + begin) * channels;
    std::fill(std::copy_n(from, (end - begin) * channels, inside), y + 3 * channels, 0.0f);
  }
}

void unfold_taps(const float* x, const Neighbourhoods& of, int64_t first, int64_t count, float* y) {
  parallel_for(0, count, 1 + 16384 / of.values(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) unfold_cell(x, of, first + i, y + i * of.values());
  });
}

}  // namespace vitrail::kernels
