// SPDX-License-Identifier: Apache-2.0
#pragma once
// Filter weights of one axis of a resize.
#include <cstdint>
#include <vector>

#include "vitrail/image/filter.h"

namespace vitrail::image {

// One axis: the source interval [from, to) is resampled to `size` positions, and the positions [begin, end) of these
// are computed.  from and to have single precision, as in Pillow.
struct Axis {
  int64_t source_size = 0;
  double from = 0, to = 0;
  int64_t size = 0, begin = 0, end = 0;
};

double scale_of(const Axis& axis);  // source positions per result position

// For each result position: the first source position, the number of taps, and their weights.
struct ResampleWeights {
  int64_t taps = 0;              // weights stored per result position; those past its count are zero
  std::vector<int64_t> firsts;   // [n]
  std::vector<int64_t> counts;   // [n]
  std::vector<int32_t> weights;  // [n, taps], fixed point with kernels::kResampleBits fractional bits
};

// The weights of the result positions [begin, end).  `filter` must not be nearest.
ResampleWeights resample_weights(const Axis& axis, Filter filter);

}  // namespace vitrail::image
