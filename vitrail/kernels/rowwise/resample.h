// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weighted sums of 8-bit pixels along one axis, in integers: every instruction set gives the same bytes.
#include <cstdint>

namespace vitrail::kernels {

constexpr int kResampleBits = 22;  // 32 − 8 for the pixel − 2 for sums outside [0, 1]

// Along one axis: result position i is the sum over t < lengths[i] of weights[i · taps + t] · source[firsts[i] + t],
// rounded and clipped to a byte.  Weights have kResampleBits fractional bits; no sum may leave 32 bits.
struct ResampleAxis {
  int64_t count = 0, taps = 0;  // result positions, and weights stored for each (those past lengths[i] are zero)
  const int64_t* firsts = nullptr;
  const int64_t* lengths = nullptr;
  const int32_t* weights = nullptr;
};

// A picture of interleaved pixels; a row has `row_bytes` bytes, and all of them follow each other.
struct PixelRows {
  const uint8_t* pixels = nullptr;
  int64_t rows = 0, row_bytes = 0;
  int channels = 1;  // 1 or 3
};

// Along x, each row of the source on its own: out [rows, axis.count, channels].
void resample_x(const PixelRows& source, const ResampleAxis& axis, uint8_t* out);

// Along y: out [axis.count, bytes], from `bytes` bytes of each row, starting `offset` bytes into it.
void resample_y(const PixelRows& source, int64_t offset, int64_t bytes, const ResampleAxis& axis, uint8_t* out);

}  // namespace vitrail::kernels
