// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/yuv.h"

#include <cmath>

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

using testing::error_of;
using Bytes = std::vector<uint8_t>;

std::span<const uint8_t> bytes_of(const Tensor& tensor) {
  return {tensor.data<uint8_t>(), static_cast<size_t>(tensor.numel())};
}

// OpenCV's weights have three decimals: 2.018 for 2.01723, 0.391 for 0.39176, 1.164 for 1.16438.  With U and V up to
// 128 from their centre and Y up to 239 above black, a value differs by 0.2, and a byte by at most 1.
::testing::AssertionResult as_in_opencv(const Image& got, const Tensor& want) {
  if (want.shape() != Shape{got.height, got.width, 3}) return ::testing::AssertionFailure() << want.shape();
  size_t different = 0;
  for (size_t i = 0; i < got.pixels.size(); ++i) {
    const int distance = std::abs(int{got.pixels[i]} - int{bytes_of(want)[i]});
    if (distance > 1) return ::testing::AssertionFailure() << "byte " << i << " differs by " << distance;
    different += distance == 1;
  }
  if (different * 5 <= got.pixels.size()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << different << " of " << got.pixels.size() << " bytes differ by 1";
}

TEST(Yuv, IsWhatOpenCvMakesOfIt) {
  const testing::Golden golden = testing::read_golden(testing::fixture("image/yuv.safetensors"));
  for (const auto& [name, format] : {std::pair("nv12", YuvFormat::nv12), {"yuyv", YuvFormat::yuyv}}) {
    const Tensor want = golden[str(name, ".result")], frame = golden[str(name, ".frame")];
    const Image got =
        to_rgb({.format = format, .width = want.size(1), .height = want.size(0), .pixels = bytes_of(frame)});
    EXPECT_TRUE(as_in_opencv(got, want)) << name;
  }
}

// The shares of red and blue in Y are the standard's; white, black and the primary colours come back.
TEST(Yuv, BothStandardsAndRangesGiveTheColorsBack) {
  for (const bool hd : {false, true}) {
    for (const bool full : {false, true}) {
      const double kr = hd ? 0.2126 : 0.299, kb = hd ? 0.0722 : 0.114;
      for (int color = 0; color < 8; ++color) {
        const int red = color & 1, green = color >> 1 & 1, blue = color >> 2;
        const double y = kr * red + (1 - kr - kb) * green + kb * blue;
        const double u = (blue - y) / (2 * (1 - kb)), v = (red - y) / (2 * (1 - kr));
        const auto sample = [](double value) { return static_cast<uint8_t>(std::lround(std::min(value, 255.0))); };
        const uint8_t luma = sample(full ? 255 * y : 16 + 219 * y);
        const double range = full ? 255 : 224;
        const Bytes pair{luma, sample(128 + range * u), luma, sample(128 + range * v)};
        const Image image = to_rgb({.format = YuvFormat::yuyv,
                                    .width = 2,
                                    .height = 1,
                                    .pixels = pair,
                                    .matrix = hd ? YuvMatrix::bt709 : YuvMatrix::bt601,
                                    .full_range = full});
        // Samples are rounded by half a step, and 2 · (1 − kb) of U's are added to Y's 255/219: below 2.
        for (size_t i = 0; i < 6; ++i) {
          const int want = 255 * (i % 3 == 0 ? red : i % 3 == 1 ? green : blue);
          EXPECT_NEAR(image.pixels[i], want, 2) << "color " << color << ", byte " << i << (hd ? ", BT.709" : "");
        }
      }
    }
  }
}

// A frame of odd size: rows with padding, planes of their own or one behind the other, give the same image.
TEST(Yuv, StridesAndPlanesAreTheCallers) {
  constexpr int64_t kWidth = 5, kHeight = 3;
  const auto luma = [](int64_t x, int64_t y) { return static_cast<uint8_t>(40 + 30 * x + 11 * y); };
  const auto chroma = [](int64_t x, int64_t y, int64_t c) {
    return static_cast<uint8_t>(90 + 9 * x + 23 * y + 40 * c);
  };
  Image want = make_image(kWidth, kHeight, 3);
  for (int64_t y = 0; y < kHeight; ++y) {
    for (int64_t x = 0; x < kWidth; ++x) {
      const Bytes pair{luma(x, y), chroma(x / 2, y / 2, 0), 0, chroma(x / 2, y / 2, 1)};
      const Image pixel = to_rgb({.format = YuvFormat::yuyv, .width = 1, .height = 1, .pixels = pair});
      std::copy_n(pixel.row(0), 3, want.row(y) + 3 * x);
    }
  }
  for (const int64_t stride : {int64_t{5}, int64_t{6}, int64_t{11}}) {
    const int64_t even = stride + stride % 2;
    Bytes y_plane(static_cast<size_t>(stride * kHeight), 1), uv_plane(static_cast<size_t>(even + 6), 1);
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        y_plane[static_cast<size_t>(y * stride + x)] = luma(x, y);
        for (int64_t c = 0; c < 2; ++c) {
          uv_plane[static_cast<size_t>(y / 2 * even + x / 2 * 2 + c)] = chroma(x / 2, y / 2, c);
        }
      }
    }
    YuvFrame frame{.width = kWidth, .height = kHeight, .pixels = y_plane, .stride = stride, .chroma = uv_plane};
    EXPECT_TRUE(same_pixels(to_rgb(frame), want)) << stride;
    Bytes both = y_plane;
    both.insert(both.end(), uv_plane.begin(), uv_plane.end());
    frame.pixels = both;
    frame.chroma = {};
    EXPECT_TRUE(same_pixels(to_rgb(frame), want)) << stride;
    frame.chroma_stride = even;
    EXPECT_TRUE(same_pixels(to_rgb(frame), want)) << stride;
  }
  Bytes pairs(2 * 20 + 12, 1);  // YUYV whose rows have 20 bytes; the last one ends with its third pair
  for (int64_t y = 0; y < kHeight; ++y) {
    for (int64_t x = 0; x < kWidth; ++x) {
      const auto at = static_cast<size_t>(y * 20 + x / 2 * 4);
      pairs[at + static_cast<size_t>(x % 2 * 2)] = luma(x, y);
      pairs[at + 1] = chroma(x / 2, y / 2, 0);
      pairs[at + 3] = chroma(x / 2, y / 2, 1);
    }
  }
  EXPECT_TRUE(same_pixels(
      to_rgb({.format = YuvFormat::yuyv, .width = kWidth, .height = kHeight, .pixels = pairs, .stride = 20}), want));
}

TEST(Yuv, PlanesThatAreTooSmallAreRefused) {
  const Bytes bytes(24);
  const auto refusal = [&](const YuvFrame& frame) { return error_of([&] { to_rgb(frame); }); };
  YuvFrame frame{.width = 4, .height = 4, .pixels = bytes};
  EXPECT_NO_THROW(to_rgb(frame));
  frame.pixels = std::span(bytes).first(23);
  EXPECT_ERROR(refusal(frame), "yuv frame: chroma", "7 bytes");
  frame.pixels = std::span(bytes).first(15);
  EXPECT_ERROR(refusal(frame), "yuv frame: pixels", "15 bytes");
  frame = {.width = 4, .height = 4, .pixels = bytes, .chroma = std::span(bytes).first(7)};
  EXPECT_ERROR(refusal(frame), "yuv frame: chroma", "7 bytes");
  frame = {.width = 4, .height = 4, .pixels = bytes, .stride = 3};
  EXPECT_ERROR(refusal(frame), "yuv frame: pixels", "3");
  frame.stride = 4, frame.chroma_stride = 3;
  EXPECT_ERROR(refusal(frame), "yuv frame: chroma", "3");
  frame = {.format = YuvFormat::yuyv, .width = 3, .height = 3, .pixels = bytes};
  EXPECT_NO_THROW(to_rgb(frame));
  frame.pixels = std::span(bytes).first(23);
  EXPECT_ERROR(refusal(frame), "yuv frame: pixels", "23 bytes");
  for (const int64_t edge : {int64_t{0}, int64_t{-1}, int64_t{1} << 31}) {
    EXPECT_ERROR(refusal({.width = edge, .height = 4, .pixels = bytes}), "yuv frame", str(edge, "×4"));
    EXPECT_ERROR(refusal({.width = 4, .height = edge, .pixels = bytes}), "yuv frame", str("4×", edge));
  }
  EXPECT_ERROR(refusal({.width = 2, .height = 1, .pixels = bytes, .stride = INT64_MAX}), "yuv frame: pixels",
               str(INT64_MAX));
  EXPECT_ERROR(refusal({.width = 0x7fffffff, .height = 0x7fffffff, .pixels = bytes}), "yuv frame: pixels", "24 bytes");
  EXPECT_ERROR(refusal({.width = 2, .height = 2}), "yuv frame: pixels", "0 bytes");
}

}  // namespace
}  // namespace vitrail::image
