// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/resample.h"

#include "tests/kernels/kernel_testing.h"

namespace vitrail::kernels {
namespace {

// Random weights that sum to about one and reach well outside [0, 1], as a sharpening filter's do.
struct Weights {
  std::vector<int64_t> firsts, lengths;
  std::vector<int32_t> weights;
  int64_t taps;

  Weights(int64_t count, int64_t max_taps, int64_t source_size, uint32_t seed) : taps(max_taps) {
    std::mt19937 engine(seed);
    weights.assign(count * taps, 0);
    for (int64_t i = 0; i < count; ++i) {
      lengths.push_back(std::min<int64_t>(1 + static_cast<int64_t>(engine() % taps), source_size));
      firsts.push_back((source_size - lengths[i]) * i / std::max<int64_t>(count - 1, 1));
      const auto one = 1 << kResampleBits;
      int32_t remainder = one;
      for (int64_t t = 0; t + 1 < lengths[i]; ++t) {
        const int32_t weight = static_cast<int32_t>(engine() % one) / 2 - one / 4;
        weights[i * taps + t] = weight / static_cast<int32_t>(lengths[i]);
        remainder -= weights[i * taps + t];
      }
      weights[i * taps + lengths[i] - 1] = remainder;
    }
    // Later positions end no earlier.
    for (int64_t i = 1; i < count; ++i) firsts[i] = std::max(firsts[i], firsts[i - 1] + lengths[i - 1] - lengths[i]);
  }

  ResampleAxis axis() const {
    return {static_cast<int64_t>(firsts.size()), taps, firsts.data(), lengths.data(), weights.data()};
  }
};

std::vector<uint8_t> random_bytes(int64_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(engine() % 3 == 0 ? (engine() & 1) * 255 : engine());
  return bytes;
}

uint8_t resample_reference(const uint8_t* source, int64_t step, const Weights& w, int64_t i) {
  int64_t sum = int64_t{1} << (kResampleBits - 1);
  for (int64_t t = 0; t < w.lengths[i]; ++t)
    sum += source[(w.firsts[i] + t) * step] * int64_t{w.weights[i * w.taps + t]};
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kResampleBits, 0, 255));
}

// The last row of the source ends with its allocation: the address sanitizer sees a read past its end.
TEST(Resample, EveryIsaGivesTheSameBytesAlongX) {
  testing::for_each_isa([](Isa) {
    for (const auto& [channels, padding] : {std::pair<int, int64_t>{1, 0}, {3, 0}, {1, 5}, {3, 70}}) {
      for (const int64_t width : {1, 2, 5, 16, 33, 61}) {
        const int64_t row_bytes = width * channels, stride = row_bytes + padding;
        for (const auto& [count, taps] : {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {20, 8}, {9, 27}, {70, 5}}) {
          const Weights w(count, taps, width, static_cast<uint32_t>(width * count));
          const std::vector<uint8_t> source = random_bytes(2 * stride + row_bytes, 7);
          std::vector<uint8_t> got(3 * count * channels), want(got.size());
          resample_x({source.data(), 3, row_bytes, stride, channels}, w.axis(), got.data());
          for (int64_t y = 0; y < 3; ++y) {
            for (int64_t i = 0; i < count * channels; ++i) {
              want[y * count * channels + i] =
                  resample_reference(source.data() + y * stride + i % channels, channels, w, i / channels);
            }
          }
          ASSERT_EQ(got, want) << channels << " channels, width " << width << " + " << padding << " bytes to " << count
                               << ", " << taps << " taps";
        }
      }
    }
  });
}

TEST(Resample, EveryIsaGivesTheSameBytesAlongY) {
  testing::for_each_isa([](Isa) {
    for (const int64_t bytes : testing::kAwkwardLengths) {
      const int64_t offset = 3, row_bytes = offset + bytes, stride = row_bytes + 2, rows = 29;
      const Weights w(11, 9, rows, static_cast<uint32_t>(bytes));
      const std::vector<uint8_t> source = random_bytes((rows - 1) * stride + row_bytes, 3);
      std::vector<uint8_t> got(11 * bytes), want(got.size());
      resample_y({source.data(), rows, row_bytes, stride, 1}, offset, bytes, w.axis(), got.data());
      for (int64_t y = 0; y < 11; ++y) {
        for (int64_t i = 0; i < bytes; ++i)
          want[y * bytes + i] = resample_reference(source.data() + offset + i, stride, w, y);
      }
      ASSERT_EQ(got, want) << bytes << " bytes";
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels
