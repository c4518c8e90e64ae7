// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weights of one axis of a resize; inside vitrail/image only.
#include <cstdint>
#include <vector>

#include "vitrail/image/filter.h"

namespace vitrail::image {

// One axis of a resize: [from, to) of `source_size` positions become `size`; of these, [begin, end) are wanted.
// from and to are single-precision values, as Pillow keeps them.
struct Axis {
  int64_t source_size = 0;
  double from = 0, to = 0;
  int64_t size = 0, begin = 0, end = 0;
};

double scale_of(const Axis& axis);  // source positions per result position

// For each result position: the first source position and the weights of it and of those that follow.
struct ResampleWeights {
  int64_t taps = 0;              // weights stored per result position; those past `counts` are zero
  std::vector<int64_t> firsts;   // [n]
  std::vector<int64_t> counts;   // [n]
  std::vector<int32_t> weights;  // [n, taps], fixed point with kernels::kResampleBits fractional bits
};

// The weights of the positions [begin, end).  `filter` is not nearest.
ResampleWeights resample_weights(const Axis& axis, Filter filter);

}  // namespace vitrail::image
