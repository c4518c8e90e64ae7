// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/vector_rows.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"

namespace vitrail::analysis {

TensorRows::TensorRows(const Tensor& rows) : rows_(rows.to(DType::f32).contiguous()) {
  if (rows.rank() != 2) throw Error("vectors", "a tensor [n, D]", rows.shape().to_string());
}

void TensorRows::read(int64_t first, int64_t count, float* values) const {
  std::copy_n(rows_.data<float>() + first * width(), count * width(), values);
}

double normalize_row(float* row, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(row[i]) * row[i];
  const double norm = std::sqrt(squares);
  const auto scale = static_cast<float>(1 / std::max(norm, 1e-12));
  for (int64_t i = 0; i < width; ++i) row[i] *= scale;
  return norm;
}

}  // namespace vitrail::analysis
