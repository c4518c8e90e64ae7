// SPDX-License-Identifier: Apache-2.0
// Affine maps whose positions are exactly at the edges of the image and between its pixels.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/affine_internal.h"

namespace vitrail::image {
namespace {

using testing::error_of;

constexpr int64_t kWidth = 6, kHeight = 4;

Image counting(int64_t channels) {
  Image image = make_image(kWidth, kHeight, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(3 * i + 7 * (i % 5));
  return image;
}

// A sample of a row or column that continues its first and last value, at a position between the centres of two pixels.
template <class At>
double between(const At& at, int64_t size, double position, Filter filter) {
  const auto first = static_cast<int64_t>(std::floor(position));
  const double t = position - static_cast<double>(first);
  const auto value = [&](int64_t i) { return at(std::min(std::max<int64_t>(i, 0), size - 1)); };
  if (filter == Filter::bilinear) return value(first) * (1 - t) + value(first + 1) * t;
  const auto weight = [](double x) {  // Keys with a = −1
    x = std::abs(x);
    return x < 1 ? x * x * x - 2 * x * x + 1 : x < 2 ? -x * x * x + 5 * x * x - 8 * x + 4 : 0;
  };
  double sum = 0;
  for (int64_t k = -1; k <= 2; ++k) sum += weight(t - static_cast<double>(k)) * value(first + k);
  return sum;
}

// Shifts by quarters: every value is exact in double.
TEST(AffineEdges, ShiftsByPartsOfAPixelInterpolateOrTakeTheNearest) {
  const Fill fill{201, 202, 203};
  for (const int64_t channels : {1, 3}) {
    const Image image = counting(channels);
    for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic}) {
      for (int step = -26; step <= 26; ++step) {
        const double shift = 0.25 * step;
        const Image along_x = affine(image, {1, 0, shift, 0, 1, 0}, filter, fill),
                    along_y = affine(image, {1, 0, 0, 0, 1, shift}, filter, fill);
        for (int64_t y = 0; y < kHeight; ++y) {
          for (int64_t x = 0; x < kWidth; ++x) {
            for (int64_t c = 0; c < channels; ++c) {
              const auto expect = [&](const Image& got, int64_t i, int64_t size, const auto& at) {
                const double position = static_cast<double>(i) + 0.5 + shift;
                double want = fill[static_cast<size_t>(c)];
                if (position >= 0 && position < static_cast<double>(size)) {
                  want = filter == Filter::nearest ? at(static_cast<int64_t>(position))
                                                   : between(at, size, position - 0.5, filter);
                }
                EXPECT_EQ(got.row(y)[x * channels + c], static_cast<int>(std::min(std::max(want, 0.0), 255.0)))
                    << name_of(filter) << " " << shift << ": " << x << " " << y;
              };
              expect(along_x, x, kWidth, [&](int64_t i) { return double{1} * image.row(y)[i * channels + c]; });
              expect(along_y, y, kHeight, [&](int64_t i) { return double{1} * image.row(i)[x * channels + c]; });
            }
          }
        }
      }
    }
  }
}

// The nearest pixel of a matrix with a shear, where positions have 16 bits behind the point, and of one that enlarges.
TEST(AffineEdges, TheNearestPixelIsThatOfTheMappedCentre) {
  const Fill fill{9, 8, 7};
  for (const int64_t channels : {1, 3}) {
    const Image image = counting(channels);
    for (const AffineMatrix& m : {AffineMatrix{1, 0.5, -0.75, 0, 1, 0},
                                  {1, 0, 0, 0.25, 1, -0.375},
                                  {0.5, 0.25, 0.125, -0.25, 0.75, 1},
                                  {0.25, 0, 0.5, 0, 0.75, -0.25},
                                  {-1, 0, 6, 0, -1, 4},
                                  {0, 1, 0, 1, 0, 0}}) {
      const Image got = affine(image, m, Filter::nearest, fill);
      for (int64_t y = 0; y < kHeight; ++y) {
        for (int64_t x = 0; x < kWidth; ++x) {
          const double u = static_cast<double>(x) + 0.5, v = static_cast<double>(y) + 0.5;
          const double from_x = m[0] * u + m[1] * v + m[2], from_y = m[3] * u + m[4] * v + m[5];
          const bool inside = from_x >= 0 && from_x < kWidth && from_y >= 0 && from_y < kHeight;
          for (int64_t c = 0; c < channels; ++c) {
            const int want = inside
                                 ? image.row(static_cast<int64_t>(from_y))[static_cast<int64_t>(from_x) * channels + c]
                                 : fill[static_cast<size_t>(c)];
            EXPECT_EQ(got.row(y)[x * channels + c], want) << m[0] << " " << m[1] << ": " << x << " " << y;
          }
        }
      }
    }
  }
}

// Rounded to 16 bits behind the point, positions would be a quarter of a pixel off at the far end of such an image.  In
// each matrix only one corner leaves the range of 15 bits before the point.
TEST(AffineEdges, MapsThatLeaveFifteenBitsAtOneCornerAreExact) {
  constexpr int64_t kLong = 40'000;
  struct Line {
    double step, other, first;  // along the long axis, along the short one, and the shift
  };
  for (const Line& line : {Line{0.999993, -5000, 0.3}, Line{-0.999993, -5000, 40'000.3},
                           Line{-0.999993, 5000, 30'000.3}, Line{0.999993, 5000, -9'999.7}}) {
    for (const bool is_wide : {true, false}) {
      Image image = is_wide ? make_image(kLong, 2, 1) : make_image(2, kLong, 1);
      for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i % 251 + 1);
      const AffineMatrix m = is_wide ? AffineMatrix{line.step, line.other, line.first, 0, 1, 0}
                                     : AffineMatrix{1, 0, 0, line.other, line.step, line.first};
      const Image got = affine(image, m, Filter::nearest, {});
      for (int64_t along = 0; along < kLong; along += 3) {
        for (int64_t across = 0; across < 2; ++across) {
          const double position = line.step * (static_cast<double>(along) + 0.5) +
                                  line.other * (static_cast<double>(across) + 0.5) + line.first;
          const bool inside = position >= 0 && position < kLong;
          const auto from = static_cast<int64_t>(position);
          const int want = !inside ? 0 : is_wide ? image.row(across)[from] : image.row(from)[across];
          ASSERT_EQ(is_wide ? got.row(across)[along] : got.row(along)[across], want) << line.first << " " << along;
        }
      }
    }
  }
}

TEST(AffineEdges, RefusalsNameTheOperation) {
  const Image broken{4, 3, 3, std::vector<uint8_t>(35)}, image = make_image(4, 3, 3);
  EXPECT_ERROR(error_of([&] { affine(broken, {1, 0, 0, 0, 1, 0}, Filter::nearest, {}); }), "affine", "35");
  EXPECT_ERROR(error_of([&] { rotate(broken, 0, Filter::nearest, {}); }), "rotate", "35");
  EXPECT_ERROR(error_of([&] { affine(image, {1, 0, 0, 0, 1, 0}, Filter::box, {}); }), "affine", "box");
  EXPECT_ERROR(error_of([&] { rotate(image, 7, Filter::hamming, {}); }), "affine", "hamming");
}

// A quarter turn of an image that is not square is no exact one, and keeps the size.
TEST(AffineEdges, AQuarterTurnKeepsTheSizeOfTheImage) {
  const Image image = counting(3);
  for (const double degrees : {90.0, 270.0}) {
    const Image got = rotate(image, degrees, Filter::nearest, {5, 6, 7});
    ASSERT_EQ(got.width, kWidth);
    ASSERT_EQ(got.height, kHeight);
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(got.row(0)[c], 5 + c) << "outside of the turned image";
      // The columns 1 to 4 are the rows; counter-clockwise the upper left one is at the lower left.
      EXPECT_EQ(got.row(degrees == 90 ? 3 : 0)[3 * (degrees == 90 ? 1 : 4) + c], image.row(0)[3 * 1 + c]) << degrees;
    }
  }
}

TEST(AffineMatrix, HasEachPartAtItsPlace) {
  const double sine = std::sin(0.5235987755982988), cosine = std::cos(0.5235987755982988);  // 30°
  const AffineMatrix m = affine_matrix({.degrees = 30, .shift_x = 2, .shift_y = 5, .scale = 1.25}, 10, 4);
  const double x = -5 - 2, y = -2 - 5;
  const AffineMatrix want{cosine / 1.25, sine / 1.25,   cosine / 1.25 * x + sine / 1.25 * y + 5,
                          -sine / 1.25,  cosine / 1.25, -sine / 1.25 * x + cosine / 1.25 * y + 2};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(m[i], want[i], 1e-12) << i;
}

}  // namespace
}  // namespace vitrail::image
