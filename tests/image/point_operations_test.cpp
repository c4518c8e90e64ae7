// SPDX-License-Identifier: Apache-2.0
// Point operations, enhancements, crops and turns by their definitions, on images of all small sizes.
#include "vitrail/image/point_operations_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/image/support.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/enhance_internal.h"

namespace vitrail::image {
namespace {

Image noise(int64_t width, int64_t height, int64_t channels, int levels = 256) {
  Image image = make_image(width, height, channels);
  RandomStream random(random_key("noise", static_cast<uint64_t>(width * 100 + height), static_cast<uint64_t>(levels)));
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.uniform() * levels);
  return image;
}
// One channel of an image.
Image plane(const Image& image, int64_t channel) {
  Image result = make_image(image.width, image.height, 1);
  for (int64_t i = 0; i < image.width * image.height; ++i)
    result.pixels[static_cast<size_t>(i)] = image.pixels[static_cast<size_t>(i * image.channels + channel)];
  return result;
}

// Pillow's ImageOps.equalize for one channel.
Image equalized(Image image) {
  std::array<int64_t, 256> counts{};
  for (const uint8_t value : image.pixels) ++counts[value];
  std::vector<int64_t> present;
  for (const int64_t count : counts) {
    if (count > 0) present.push_back(count);
  }
  const int64_t step = (static_cast<int64_t>(image.pixels.size()) - present.back()) / 255;
  if (present.size() <= 1 || step == 0) return image;
  std::array<uint8_t, 256> table{};
  int64_t n = step / 2;
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(std::min<int64_t>(n / step, 255)), n += counts[i];
  for (uint8_t& value : image.pixels) value = table[value];
  return image;
}
// Pillow's ImageOps.autocontrast for one channel.
Image stretched(Image image) {
  const auto [low, high] = std::minmax_element(image.pixels.begin(), image.pixels.end());
  const int from = *low, to = *high;
  if (to <= from) return image;
  const double scale = 255.0 / (to - from), offset = -from * scale;
  for (uint8_t& value : image.pixels)
    value = static_cast<uint8_t>(std::clamp(static_cast<int>(value * scale + offset), 0, 255));
  return image;
}

TEST(PointOperations, HistogramsAreOfAllPixelsOfAChannel) {
  for (const auto& [width, height] :
       {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {3, 1}, {19, 29}, {20, 30}, {31, 33}}) {
    for (const int levels : {1, 2, 3, 256}) {
      for (const int64_t channels : {1, 3}) {
        const Image image = noise(width, height, channels, levels);
        Image equal = image, contrast = image;
        equalize(equal);
        autocontrast(contrast);
        for (int64_t c = 0; c < channels; ++c) {
          EXPECT_TRUE(same_pixels(plane(equal, c), equalized(plane(image, c)))) << width << " " << levels;
          EXPECT_TRUE(same_pixels(plane(contrast, c), stretched(plane(image, c)))) << width << " " << levels;
        }
      }
    }
  }
}

// The only dark and the only bright pixel of an odd number is the last one.
TEST(PointOperations, TheLastPixelCounts) {
  for (const uint8_t last : {0, 250}) {
    Image image{3, 1, 1, {100, 150, last}};
    autocontrast(image);
    EXPECT_EQ(image.pixels[2], last == 0 ? 0 : 255);
    EXPECT_EQ(image.pixels[last == 0 ? 1 : 0], last == 0 ? 255 : 0);
  }
}

TEST(PointOperations, ChangeValuesByTheirDefinition) {
  for (int value = 0; value < 256; ++value) {
    const auto result = [&](const auto& change) {
      Image image{1, 1, 1, {static_cast<uint8_t>(value)}};
      change(image);
      return int{image.pixels[0]};
    };
    EXPECT_EQ(result([](Image& i) { invert(i); }), 255 - value);
    for (const int bits : {0, 1, 4, 7, 8}) {
      EXPECT_EQ(result([&](Image& i) { posterize(i, bits); }), value / (1 << (8 - bits)) * (1 << (8 - bits))) << bits;
    }
    for (const double threshold : {0.0, 1.0, 127.5, 128.0, 255.0, 256.0}) {
      EXPECT_EQ(result([&](Image& i) { solarize(i, threshold); }), value < threshold ? value : 255 - value)
          << threshold;
    }
    for (const int threshold : {0, 128, 256, 300}) {
      for (const int add : {-300, -20, 0, 110, 300}) {
        const int want = value < threshold ? std::clamp(value + add, 0, 255) : value;
        EXPECT_EQ(result([&](Image& i) { solarize_add(i, add, threshold); }), want) << threshold << " " << add;
      }
    }
    EXPECT_EQ(result([](Image& i) { solarize_add(i, 10); }), value < 128 ? value + 10 : value)
        << "by default below 128";
    for (const double factor : {0.0, 0.5, 1.0, 1.7, 3.0}) {
      const int want = static_cast<int>(std::min(255.0F, static_cast<float>(factor) * static_cast<float>(value)));
      EXPECT_EQ(result([&](Image& i) { adjust_brightness(i, factor); }), want) << factor;
    }
  }
}

TEST(Enhance, AFactorOfOneChangesNothingAndZeroGivesTheDegenerateImage) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1, 1}, {2, 7}, {7, 2}, {3, 3}, {9, 5}}) {
    for (const int64_t channels : {1, 3}) {
      const Image image = noise(width, height, channels);
      for (const auto& adjust : {adjust_brightness, adjust_contrast, adjust_color, adjust_sharpness}) {
        Image same = image;
        adjust(same, 1);
        EXPECT_TRUE(same_pixels(same, image));
      }
      Image grey = image, flat = image;
      adjust_color(grey, 0);
      adjust_contrast(flat, 0);
      double sum = 0;
      for (int64_t i = 0; i < width * height; ++i) {
        const uint8_t* p = image.pixels.data() + i * channels;
        const int luminance = channels == 1 ? p[0] : luma(p[0], p[1], p[2]);
        sum += luminance;
        for (int64_t c = 0; c < channels; ++c) EXPECT_EQ(grey.pixels[static_cast<size_t>(i * channels + c)], luminance);
      }
      const auto mean = static_cast<int>(sum / static_cast<double>(width * height) + 0.5);
      EXPECT_TRUE(std::all_of(flat.pixels.begin(), flat.pixels.end(), [&](uint8_t value) { return value == mean; }));
    }
  }
}

// Pillow's SMOOTH: weights 1, in the centre 5, over 13; pixels at the edge stay.
TEST(Enhance, SharpnessOfZeroIsSmoothed) {
  for (const int64_t channels : {1, 3}) {
    const Image image = noise(6, 5, channels);
    Image smooth = image;
    adjust_sharpness(smooth, 0);
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t x = 0; x < 6; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (int64_t v = y - 1; v <= y + 1; ++v) {
            for (int64_t u = x - 1; u <= x + 1; ++u) {
              if (v < 0 || u < 0 || v > 4 || u > 5) continue;
              sum += (u == x && v == y ? 5.0 : 1.0) * image.row(v)[u * channels + c];
            }
          }
          const bool edge = x == 0 || y == 0 || x == 5 || y == 4;
          const int want = edge ? image.row(y)[x * channels + c] : static_cast<int>(std::lround(sum / 13));
          EXPECT_EQ(smooth.row(y)[x * channels + c], want) << x << " " << y;
        }
      }
    }
  }
}

// The position in a row that is mirrored at its edge pixels again and again.
int64_t mirrored(int64_t position, int64_t size) {
  while (position < 0 || position >= size) position = position < 0 ? -position : 2 * (size - 1) - position;
  return position;
}

TEST(Crop, EqualsItsDefinitionForEveryWindow) {
  const Fill fill{11, 22, 33};
  for (const int64_t channels : {1, 3}) {
    const Image image = noise(4, 3, channels);
    for (int64_t left = -3; left <= 4; ++left) {
      for (int64_t top = -2; top <= 3; ++top) {
        for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {4, 3}, {7, 5}}) {
          const Image constant = crop(image, {left, top, width, height}, Padding::constant, fill);
          const bool reflects = left + width <= 7 && top + height <= 5;
          const Image reflect = reflects ? crop(image, {left, top, width, height}, Padding::reflect) : image;
          for (int64_t y = 0; y < height; ++y) {
            for (int64_t x = 0; x < width; ++x) {
              const int64_t u = left + x, v = top + y;
              for (int64_t c = 0; c < channels; ++c) {
                const bool inside = u >= 0 && u < 4 && v >= 0 && v < 3;
                const int want = inside ? image.row(v)[u * channels + c] : fill[static_cast<size_t>(c)];
                ASSERT_EQ(constant.row(y)[x * channels + c], want) << left << " " << top << " " << x << " " << y;
                if (!reflects) continue;
                ASSERT_EQ(reflect.row(y)[x * channels + c], image.row(mirrored(v, 3))[mirrored(u, 4) * channels + c]);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_THROW(crop(noise(4, 3, 1), {4, 0, 4, 1}, Padding::reflect), Error) << "a width beyond the image";
  EXPECT_THROW(crop(noise(4, 3, 1), {0, 3, 1, 3}, Padding::reflect), Error);
}

TEST(Mirror, TwiceIsTheSameAndColumnsAreSwapped) {
  for (const int64_t channels : {1, 3}) {
    for (int64_t width = 1; width <= 6; ++width) {
      const Image image = noise(width, 3, channels);
      Image result = image;
      mirror(result);
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          EXPECT_EQ(result.row(2)[x * channels + c], image.row(2)[(width - 1 - x) * channels + c]) << width;
        }
      }
      mirror(result);
      EXPECT_TRUE(same_pixels(result, image));
    }
  }
}

TEST(Rotate, QuarterTurnsAreExact) {
  for (const int64_t channels : {1, 3}) {
    const Image square = noise(5, 5, channels), wide = noise(5, 3, channels);
    const auto turned = [&](const Image& image, double degrees) { return rotate(image, degrees, Filter::bicubic, {}); };
    const Image quarter = turned(square, 90);
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t x = 0; x < 5; ++x) {
        // Counter-clockwise: the right column becomes the upper row.
        EXPECT_EQ(quarter.row(y)[x * channels], square.row(x)[(4 - y) * channels]) << x << " " << y;
      }
    }
    EXPECT_TRUE(same_pixels(turned(quarter, 90), turned(square, 180)));
    EXPECT_TRUE(same_pixels(turned(square, -90), turned(square, 270)));
    EXPECT_TRUE(same_pixels(turned(turned(square, 270), 90), square));
    EXPECT_TRUE(same_pixels(turned(square, 450), quarter));
    for (const double none : {0.0, 360.0, -720.0}) EXPECT_TRUE(same_pixels(turned(wide, none), wide));
    const Image half = turned(wide, -180);
    for (int64_t i = 0; i < 15; ++i) {
      for (int64_t c = 0; c < channels; ++c) {
        EXPECT_EQ(half.pixels[static_cast<size_t>(i * channels + c)],
                  wide.pixels[static_cast<size_t>((14 - i) * channels + c)]);
      }
    }
  }
}

TEST(Affine, AShiftByPixelsMovesTheImageAndFillsTheRest) {
  const Fill fill{1, 2, 3};
  for (const int64_t channels : {1, 3}) {
    const Image image = noise(6, 4, channels);
    for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic}) {
      for (const int64_t dx : {-6, -2, 0, 1, 5, 6}) {
        for (const int64_t dy : {-3, 0, 2}) {
          const AffineMatrix matrix{1, 0, static_cast<double>(dx), 0, 1, static_cast<double>(dy)};
          const Image want = crop(image, {dx, dy, 6, 4}, Padding::constant, fill);
          EXPECT_TRUE(same_pixels(affine(image, matrix, filter, fill), want)) << name_of(filter) << dx << " " << dy;
        }
      }
    }
  }
}

// Steps of 16 bits behind the point would be wrong by a quarter of a pixel at the end of such a row.
TEST(Affine, PositionsInALongRowAreThoseOfTheMatrix) {
  const Image image = noise(33'000, 2, 1);
  const AffineMatrix m{1.000007, 1e-7, 0.4, 1e-9, 1, 0};
  const Image result = affine(image, m, Filter::nearest, {});
  for (int64_t x = 0; x < 33'000; ++x) {
    const auto from = static_cast<int64_t>(m[0] * (static_cast<double>(x) + 0.5) + m[1] * 0.5 + m[2]);
    ASSERT_EQ(result.row(0)[x], from < 33'000 ? image.row(0)[from] : 0) << x;
  }
}

TEST(AffineMatrix, TurnsScalesAndShiftsAboutTheCentre) {
  const AffineMatrix identity = affine_matrix({}, 8, 6);
  EXPECT_EQ(identity, (AffineMatrix{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(affine_matrix({.shift_x = 3, .shift_y = -2}, 8, 6), (AffineMatrix{1, 0, -3, 0, 1, 2}));
  EXPECT_EQ(affine_matrix({.scale = 2}, 8, 6), (AffineMatrix{0.5, 0, 2, 0, 0.5, 1.5}));
  const AffineMatrix turned = affine_matrix({.degrees = 90}, 8, 6);  // clockwise: the result's top is the source's left
  const auto source = [&](double x, double y) {
    return std::array{turned[0] * x + turned[1] * y + turned[2], turned[3] * x + turned[4] * y + turned[5]};
  };
  EXPECT_NEAR(source(4, 3)[0], 4, 1e-12);
  EXPECT_NEAR(source(4, 0)[0], 1, 1e-12);
  EXPECT_NEAR(source(4, 0)[1], 3, 1e-12);
}

TEST(Color, InkTimesWhiteIsRoundedToTheNearestValue) {
  for (int white = 0; white < 256; ++white) {
    for (int value = 0; value < 256; ++value) {
      const auto v = static_cast<uint8_t>(value);
      const uint8_t cmyk[4] = {v, v, v, static_cast<uint8_t>(white)};
      uint8_t rgb[3];
      inverted_cmyk_to_rgb(cmyk, 1, rgb);
      EXPECT_EQ(rgb[2], white - std::lround((255 - value) * white / 255.0)) << value << " " << white;
    }
  }
}

// An image of three rows or columns has pixels that are not at its edge.
TEST(Enhance, SharpnessReachesTheInnerPixelsOfSmallImages) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{3, 3}, {5, 3}, {3, 5}}) {
    Image image = make_image(width, height, 1);
    image.row(1)[1] = 130;
    adjust_sharpness(image, 0);
    EXPECT_EQ(image.row(1)[1], 50) << "5 / 13";
    EXPECT_EQ(image.row(0)[1], 0) << "an edge";
  }
  Image low = make_image(3, 2, 1);
  low.row(1)[1] = 130;
  adjust_sharpness(low, 0);
  EXPECT_EQ(low.row(1)[1], 130);
}

}  // namespace
}  // namespace vitrail::image
