// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resampling of 8-bit images along one axis, in the integer arithmetic of Pillow (src/libImaging/Resample.c).  Every
// instruction set gives the same bytes.
#include <cstdint>

namespace vitrail::kernels {

constexpr int kResampleBits = 22;  // 32 − 8 for the pixel − 2 for sums outside [0, 1]

// The filter of one axis: out[i] = Σ_t weights[i · taps + t] · source[firsts[i] + t] over t < lengths[i], rounded and
// clamped to a byte.  Weights are fixed-point values with kResampleBits fractional bits; no sum may overflow 32 bits.
struct ResampleAxis {
  int64_t count = 0, taps = 0;       // output positions, and the weights stored per position
  const int64_t* firsts = nullptr;   // [count]; firsts[i] + lengths[i] must not decrease
  const int64_t* lengths = nullptr;  // [count], at most taps
  const int32_t* weights = nullptr;  // [count, taps], zeros from lengths[i] on
};

// An image [rows, row_bytes] of interleaved channels; a row begins `stride` bytes after the one above.
struct PixelRows {
  const uint8_t* pixels = nullptr;
  int64_t rows = 0, row_bytes = 0, stride = 0;
  int channels = 1;  // 1 or 3
};

// Resamples each row: out [rows, axis.count, channels].
void resample_x(const PixelRows& source, const ResampleAxis& axis, uint8_t* out);

// Resamples each column of bytes [offset, offset + bytes) of the rows: out [axis.count, bytes].
void resample_y(const PixelRows& source, int64_t offset, int64_t bytes, const ResampleAxis& axis, uint8_t* out);

}  // namespace vitrail::kernels
