// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/resample.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/rowwise/resample.cpp"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/isa/highway-inl.h"

#ifndef VITRAIL_KERNELS_RESAMPLE_ONCE
#define VITRAIL_KERNELS_RESAMPLE_ONCE
namespace vitrail::kernels {

constexpr int32_t kResampleHalf = 1 << (kResampleBits - 1);  // rounds to nearest before the shift

// The specification: one output byte from `taps` samples, `stride` bytes apart.
inline uint8_t weighted_sum(const uint8_t* source, int64_t stride, const int32_t* weights, int64_t taps) {
  int32_t sum = kResampleHalf;
  for (int64_t t = 0; t < taps; ++t) sum += source[t * stride] * weights[t];
  return static_cast<uint8_t>(std::clamp(sum >> kResampleBits, 0, 255));
}

// Output positions [begin, end) of one row.
inline void scalar_positions(const uint8_t* row, int channels, const ResampleAxis& axis, int64_t begin, int64_t end,
                             uint8_t* out) {
  for (int64_t i = begin; i < end; ++i) {
    for (int c = 0; c < channels; ++c) {
      out[i * channels + c] =
          weighted_sum(row + axis.firsts[i] * channels + c, channels, axis.weights + i * axis.taps, axis.lengths[i]);
    }
  }
}

// The vector kernels multiply pairs of 16-bit values and add them in 32 bits, which is one instruction on most
// processors (pmaddwd).  A weight has up to 24 bits, so it is split: weight = high · 2^11 + low, 0 ≤ low < 2^11.  The
// partial sums may wrap around; their combination does not.
constexpr int kLowBits = 11;
constexpr int64_t kTapsPerStep = 8;
struct SplitWeights {
  int64_t taps = 0;               // ResampleAxis::taps, rounded up to a multiple of kTapsPerStep
  const int16_t* low = nullptr;   // [count, taps], zeros beyond the filter
  const int16_t* high = nullptr;  // [count, taps]
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // Highway's baseline, which never runs, has no vectors of 16 bytes

void row_x(const uint8_t* row, int channels, const ResampleAxis& axis, const SplitWeights&, int64_t count,
           uint8_t* out) {
  scalar_positions(row, channels, axis, 0, count, out);
}

#else

using D8 = hn::FixedTag<uint8_t, 16>;
using D16 = hn::FixedTag<int16_t, 8>;
using D32 = hn::FixedTag<int32_t, 4>;
using Sum = hn::Vec<D32>;

// (low + high · 2^11), rounded to an integer.
HWY_INLINE Sum combined(Sum low, Sum high) {
  const D32 d32;
  const Sum sum = hn::Add(hn::Add(low, hn::ShiftLeft<kLowBits>(high)), hn::Set(d32, kResampleHalf));
  return hn::ShiftRight<kResampleBits>(sum);
}

// One pixel of three channels from `taps` pixels, a multiple of 4.  Reads 4 bytes past the last pixel.
HWY_INLINE void sum_of_rgb(const uint8_t* source, const int16_t* low, const int16_t* high, int64_t taps, uint8_t* out) {
  const D8 d8;
  const D16 d16;
  const D32 d32;
  // Widens the bytes of pixels 0 and 1 (then of 2 and 3) to 16 bits, the two of a channel side by side; 0x80 gives 0.
  alignas(16) constexpr uint8_t kFirst[16] = {0, 0x80, 3, 0x80, 1,    0x80, 4,    0x80,
                                              2, 0x80, 5, 0x80, 0x80, 0x80, 0x80, 0x80};
  alignas(16) constexpr uint8_t kSecond[16] = {6, 0x80, 9,  0x80, 7,    0x80, 10,   0x80,
                                               8, 0x80, 11, 0x80, 0x80, 0x80, 0x80, 0x80};
  const auto first = hn::Load(d8, kFirst), second = hn::Load(d8, kSecond);
  Sum low_sum = hn::Zero(d32), high_sum = hn::Zero(d32), low_odd = hn::Zero(d32), high_odd = hn::Zero(d32);
  const auto weights = [&](const int16_t* at) {
    int32_t pair;
    std::memcpy(&pair, at, sizeof(pair));
    return hn::BitCast(d16, hn::Set(d32, pair));
  };
  for (int64_t t = 0; t < taps; t += 4) {
    const auto pixels = hn::LoadU(d8, source + 3 * t);
    const auto a = hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, first));
    const auto b = hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, second));
    low_sum = hn::ReorderWidenMulAccumulate(d32, a, weights(low + t), low_sum, low_odd);
    high_sum = hn::ReorderWidenMulAccumulate(d32, a, weights(high + t), high_sum, high_odd);
    low_sum = hn::ReorderWidenMulAccumulate(d32, b, weights(low + t + 2), low_sum, low_odd);
    high_sum = hn::ReorderWidenMulAccumulate(d32, b, weights(high + t + 2), high_sum, high_odd);
  }
  const Sum sum =
      combined(hn::RearrangeToOddPlusEven(low_sum, low_odd), hn::RearrangeToOddPlusEven(high_sum, high_odd));
  alignas(4) uint8_t bytes[4];
  const hn::Rebind<uint8_t, D32> d_bytes;
  hn::Store(hn::DemoteTo(d_bytes, sum), d_bytes, bytes);
  std::memcpy(out, bytes, 3);
}

// One grey pixel from `taps` pixels, a multiple of 8.
HWY_INLINE void sum_of_grey(const uint8_t* source, const int16_t* low, const int16_t* high, int64_t taps,
                            uint8_t* out) {
  const D16 d16;
  const D32 d32;
  const hn::Rebind<uint8_t, D16> d_bytes;
  Sum low_sum = hn::Zero(d32), high_sum = hn::Zero(d32), low_odd = hn::Zero(d32), high_odd = hn::Zero(d32);
  for (int64_t t = 0; t < taps; t += 8) {
    const auto pixels = hn::PromoteTo(d16, hn::LoadU(d_bytes, source + t));
    low_sum = hn::ReorderWidenMulAccumulate(d32, pixels, hn::LoadU(d16, low + t), low_sum, low_odd);
    high_sum = hn::ReorderWidenMulAccumulate(d32, pixels, hn::LoadU(d16, high + t), high_sum, high_odd);
  }
  const Sum low_all = hn::SumOfLanes(d32, hn::RearrangeToOddPlusEven(low_sum, low_odd));
  const Sum high_all = hn::SumOfLanes(d32, hn::RearrangeToOddPlusEven(high_sum, high_odd));
  const int32_t value = hn::GetLane(combined(low_all, high_all));
  *out = static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// Output positions [0, count) of one row.
void row_x(const uint8_t* row, int channels, const ResampleAxis& axis, const SplitWeights& split, int64_t count,
           uint8_t* out) {
  for (int64_t i = 0; i < count; ++i, out += channels) {
    const int16_t* low = split.low + i * split.taps;
    const int16_t* high = split.high + i * split.taps;
    const uint8_t* source = row + axis.firsts[i] * channels;
    if (channels == 3) {
      sum_of_rgb(source, low, high, (axis.lengths[i] + 3) & ~int64_t{3}, out);
    } else {
      sum_of_grey(source, low, high, (axis.lengths[i] + 7) & ~int64_t{7}, out);
    }
  }
}

#endif

// kVectors · lanes bytes of an output row, from `taps` source rows, `stride` bytes apart.
template <int kVectors>
HWY_INLINE void weighted_rows(const uint8_t* source, int64_t stride, const int32_t* weights, int64_t taps,
                              uint8_t* out) {
  const hn::ScalableTag<int32_t> d32;
  const hn::Rebind<uint8_t, decltype(d32)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d32));
  auto s0 = hn::Set(d32, kResampleHalf), s1 = s0, s2 = s0, s3 = s0;
  const auto add = [&](auto& sum, const uint8_t* at, auto weight) {
    sum = hn::Add(sum, hn::Mul(hn::PromoteTo(d32, hn::LoadU(d8, at)), weight));
  };
  for (int64_t t = 0; t < taps; ++t, source += stride) {
    const auto weight = hn::Set(d32, weights[t]);
    add(s0, source, weight);
    if (kVectors == 4) {
      add(s1, source + lanes, weight);
      add(s2, source + 2 * lanes, weight);
      add(s3, source + 3 * lanes, weight);
    }
  }
  const auto store = [&](auto sum, uint8_t* at) {
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<kResampleBits>(sum)), d8, at);
  };
  store(s0, out);
  if (kVectors == 4) {
    store(s1, out + lanes);
    store(s2, out + 2 * lanes);
    store(s3, out + 3 * lanes);
  }
}

// One output row; returns how many of its bytes are done, all but less than a vector.
int64_t row_y(const uint8_t* source, int64_t stride, const int32_t* weights, int64_t taps, int64_t bytes,
              uint8_t* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<int32_t>()));
  int64_t i = 0;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) weighted_rows<4>(source + i, stride, weights, taps, out + i);
  for (; i + lanes <= bytes; i += lanes) weighted_rows<1>(source + i, stride, weights, taps, out + i);
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

namespace vitrail::kernels {
namespace {

void scalar_row_x(const uint8_t* row, int channels, const ResampleAxis& axis, const SplitWeights&, int64_t count,
                  uint8_t* out) {
  scalar_positions(row, channels, axis, 0, count, out);
}
int64_t scalar_row_y(const uint8_t* source, int64_t stride, const int32_t* weights, int64_t taps, int64_t bytes,
                     uint8_t* out) {
  for (int64_t i = 0; i < bytes; ++i) out[i] = weighted_sum(source + i, stride, weights, taps);
  return bytes;
}

VITRAIL_EXPORT(row_x, scalar_row_x);
VITRAIL_EXPORT(row_y, scalar_row_y);

// The number of output positions that row_x() can compute without reading past `readable` bytes: it reads up to
// kTapsPerStep pixels past the end of a filter, with weights of zero.
int64_t vector_positions(const ResampleAxis& axis, int channels, int64_t readable) {
  int64_t count = axis.count;
  while (count > 0 && (axis.firsts[count - 1] + axis.lengths[count - 1] + kTapsPerStep) * channels > readable) --count;
  return count;
}

}  // namespace

void resample_x(const PixelRows& source, const ResampleAxis& axis, uint8_t* out) {
  const int64_t padded_taps = round_up(axis.taps, kTapsPerStep);
  std::vector<int16_t> low(axis.count * padded_taps), high(axis.count * padded_taps);
  for (int64_t i = 0; i < axis.count; ++i) {
    for (int64_t t = 0; t < axis.lengths[i]; ++t) {
      const int32_t weight = axis.weights[i * axis.taps + t];
      low[i * padded_taps + t] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
      high[i * padded_taps + t] = static_cast<int16_t>(weight >> kLowBits);
    }
  }
  const SplitWeights split{padded_taps, low.data(), high.data()};
  auto* const one_row = &VITRAIL_DISPATCH(row_x);
  for (int64_t y = 0; y < source.rows; ++y, out += axis.count * source.channels) {
    const uint8_t* const row = source.pixels + y * source.stride;
    const int64_t readable = (source.rows - 1 - y) * source.stride + source.row_bytes;
    const int64_t done = vector_positions(axis, source.channels, readable);
    one_row(row, source.channels, axis, split, done, out);
    scalar_positions(row, source.channels, axis, done, axis.count, out);
  }
}

void resample_y(const PixelRows& source, int64_t offset, int64_t bytes, const ResampleAxis& axis, uint8_t* out) {
  auto* const one_row = &VITRAIL_DISPATCH(row_y);
  for (int64_t y = 0; y < axis.count; ++y, out += bytes) {
    const uint8_t* const rows = source.pixels + axis.firsts[y] * source.stride + offset;
    const int32_t* const weights = axis.weights + y * axis.taps;
    const int64_t taps = axis.lengths[y];
    for (int64_t i = one_row(rows, source.stride, weights, taps, bytes, out); i < bytes; ++i) {
      out[i] = weighted_sum(rows + i, source.stride, weights, taps);
    }
  }
}

}  // namespace vitrail::kernels
#endif
