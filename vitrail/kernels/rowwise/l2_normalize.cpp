// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/l2_normalize.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

template <class T>
double normalize(T* row, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  const double norm = std::sqrt(squares);
  const auto scale = static_cast<T>(1 / std::max(norm, kMinNorm));
  for (int64_t i = 0; i < width; ++i) row[i] *= scale;
  return norm;
}

}  // namespace

double normalize_row(float* row, int64_t width) { return normalize(row, width); }
double normalize_row(double* row, int64_t width) { return normalize(row, width); }

void normalize_rows(float* rows, int64_t count, int64_t width) {
  parallel_for(0, count, 64, [=](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) normalize_row(rows + r * width, width);
  });
}

}  // namespace vitrail::kernels
