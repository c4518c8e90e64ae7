// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/unfold.h"

#include <algorithm>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

// The three taps of a row of the map are adjacent in memory.
void unfold_cell(const float* map, const Neighbourhoods& of, int64_t row, int64_t column, float* y) {
  const int64_t channels = of.channels, left = column - 1;
  const int64_t begin = std::max<int64_t>(left, 0), end = std::min(column + 2, of.width);
  for (int64_t dy = -1; dy <= 1; ++dy, y += 3 * channels) {
    if (row + dy < 0 || row + dy >= of.height) {
      std::fill_n(y, 3 * channels, 0.0f);
      continue;
    }
    float* const inside = std::fill_n(y, (begin - left) * channels, 0.0f);
    float* const right =
        std::copy_n(map + ((row + dy) * of.width + begin) * channels, (end - begin) * channels, inside);
    std::fill(right, y + 3 * channels, 0.0f);
  }
}

}  // namespace

void unfold_taps(const float* x, const Neighbourhoods& of, int64_t first, int64_t count, float* y) {
  const int64_t rows = of.rows(), columns = of.columns(), map_values = of.height * of.width * of.channels;
  parallel_for(0, count, 1 + 16384 / of.values(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t cell = first + i, row = cell / columns;
      unfold_cell(x + row / rows * map_values, of, row % rows * of.stride, cell % columns * of.stride,
                  y + i * of.values());
    }
  });
}

}  // namespace vitrail::kernels
