// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/l2_normalize.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {

double normalize_row(float* row, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(row[i]) * row[i];
  const double norm = std::sqrt(squares);
  const auto scale = static_cast<float>(1 / std::max(norm, 1e-12));
  for (int64_t i = 0; i < width; ++i) row[i] *= scale;
  return norm;
}

void normalize_rows(float* rows, int64_t count, int64_t width) {
  parallel_for(0, count, 64, [=](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) normalize_row(rows + r * width, width);
  });
}

}  // namespace vitrail::kernels
