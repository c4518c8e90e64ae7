// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/random_directions.h"

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"

namespace vitrail::ops {

Tensor random_directions(int64_t dim, int64_t count, uint64_t seed, uint64_t step) {
  if (dim < 1 || count < 1)
    throw Error("random_directions", "at least 1 dimension and direction", str(dim, ", ", count));
  const uint64_t key = random_key("directions", seed, step);
  const Tensor rows = Tensor::empty({count, dim});
  parallel_for(0, count, 1 + 512 / dim, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      RandomStream random(key, static_cast<uint64_t>(r));
      float* const row = rows.data<float>() + r * dim;
      for (int64_t i = 0; i < dim; ++i) row[i] = static_cast<float>(random.normal());
      kernels::normalize_row(row, dim);
    }
  });
  return rows.transpose(0, 1).contiguous();
}

}  // namespace vitrail::ops
