// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/vector_rows.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::analysis {

TensorRows::TensorRows(const Tensor& rows) : rows_(rows.to(DType::f32).contiguous()) {
  if (rows.rank() != 2) throw Error("vectors", "a tensor [n, D]", rows.shape().to_string());
}

void TensorRows::read(int64_t first, int64_t count, float* values) const {
  std::copy_n(rows_.data<float>() + first * width(), count * width(), values);
}

}  // namespace vitrail::analysis
