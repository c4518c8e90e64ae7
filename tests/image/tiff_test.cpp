// SPDX-License-Identifier: Apache-2.0
// TIFF files that the reference's writer does not make: tiles, planes of tiles, samples of every type, wrong tags.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

using Pixels = std::vector<uint8_t>;

// A little-endian TIFF file of one directory; `blocks` are its strips or tiles.
struct Tiff {
  std::map<uint16_t, std::vector<uint32_t>> tags = {};
  std::vector<Pixels> blocks = {};
  std::map<uint16_t, std::vector<uint32_t>> shorts = {};  // tags with two bytes to a number

  Pixels file() const {
    std::map<uint16_t, std::vector<uint32_t>> all = tags;
    all.insert(shorts.begin(), shorts.end());
    const bool is_tiled = tags.contains(322);
    std::vector<uint32_t>&offsets = all[is_tiled ? 324 : 273], &sizes = all[is_tiled ? 325 : 279];
    size_t values = 0;
    offsets.resize(blocks.size());
    for (const Pixels& block : blocks) sizes.push_back(static_cast<uint32_t>(block.size()));
    const auto bytes_in = [&](uint16_t tag) { return shorts.contains(tag) ? 2 : 4; };
    for (const auto& [tag, numbers] : all) {
      if (numbers.size() > 1) values += static_cast<size_t>(bytes_in(tag)) * numbers.size();
    }
    const size_t end_of_tags = 8 + 2 + 12 * all.size() + 4;
    size_t at = end_of_tags + values;
    for (size_t i = 0; i < blocks.size(); ++i) offsets[i] = static_cast<uint32_t>(at), at += blocks[i].size();
    Pixels bytes{'I', 'I', 42, 0, 8, 0, 0, 0}, outside;
    const auto put = [](Pixels& to, size_t value, int count) {
      for (int i = 0; i < count; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
    };
    put(bytes, all.size(), 2);
    for (const auto& [tag, numbers] : all) {
      put(bytes, tag, 2), put(bytes, shorts.contains(tag) ? 3 : 4, 2), put(bytes, numbers.size(), 4);
      if (numbers.size() == 1) {
        put(bytes, numbers[0], 4);
      } else {
        put(bytes, end_of_tags + outside.size(), 4);
        for (const uint32_t number : numbers) put(outside, number, bytes_in(tag));
      }
    }
    put(bytes, 0, 4);
    bytes.insert(bytes.end(), outside.begin(), outside.end());
    for (const Pixels& block : blocks) bytes.insert(bytes.end(), block.begin(), block.end());
    return bytes;
  }
};

constexpr uint16_t kTiffWidth = 256, kTiffHeight = 257, kBits = 258, kPhotometric = 262, kOrientation = 274,
                   kSamples = 277, kPlanar = 284, kTileWidth = 322, kTileHeight = 323, kColorMap = 320, kExtra = 338,
                   kFormat = 339;

// One strip of uncompressed samples.
Tiff strip(uint32_t width, uint32_t height, uint32_t bits, uint32_t photometric, const Pixels& data) {
  return {{{kTiffWidth, {width}},
           {kTiffHeight, {height}},
           {kBits, {bits}},
           {kPhotometric, {photometric}},
           {kSamples, {1}},
           {278, {height}}},
          {data}};
}

Image read_tiff(const Tiff& tiff, ColorMode mode = ColorMode::grey) {
  const Pixels file = tiff.file();
  return decode(std::as_bytes(std::span(file)), {.mode = mode}, "test");
}
std::string tiff_refusal(const Tiff& tiff) {
  return testing::error_of([&] { read_tiff(tiff); });
}

template <class T>
Pixels bytes_of(const std::vector<T>& values) {
  Pixels bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Values from 255 on are white, as Pillow reads them, and those below 0 black.
TEST(Tiff, SamplesOfEachTypeAreClamped) {
  const auto grey = [](const Pixels& data, uint32_t bits, uint32_t format, uint32_t count) {
    Tiff tiff = strip(count, 1, bits, 1, data);
    tiff.tags[kFormat] = {format};
    return read_tiff(tiff).pixels;
  };
  constexpr uint32_t kUnsigned = 1, kSigned = 2, kFloat = 3, kVoid = 4;
  EXPECT_EQ(grey(bytes_of<uint16_t>({0, 1, 254, 255, 256, 65535}), 16, kUnsigned, 6),
            (Pixels{0, 1, 254, 255, 255, 255}));
  EXPECT_EQ(grey(bytes_of<uint16_t>({0, 254, 40000}), 16, kVoid, 3), (Pixels{0, 254, 255}));
  EXPECT_EQ(grey(bytes_of<int16_t>({0, -1, -32768, 254, 256, 32767}), 16, kSigned, 6),
            (Pixels{0, 0, 0, 254, 255, 255}));
  EXPECT_EQ(grey(bytes_of<uint32_t>({0, 7, 254, 256, 4294967295}), 32, kUnsigned, 5), (Pixels{0, 7, 254, 255, 255}));
  EXPECT_EQ(grey(bytes_of<int32_t>({-7, 7, -2147483647, 300, 2147483647}), 32, kSigned, 5),
            (Pixels{0, 7, 0, 255, 255}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(grey(bytes_of<float>({-3, nan, 0.9F, 1.5F, 254.9F, 255, 1e9F}), 32, kFloat, 7),
            (Pixels{0, 0, 0, 1, 254, 255, 255}));
}

TEST(Tiff, SamplesOfFewBitsAreScaledToAByteOrIndices) {
  const auto row = [](uint32_t bits, uint32_t photometric, uint32_t width, const Pixels& data) {
    return read_tiff(strip(width, 1, bits, photometric, data)).pixels;
  };
  EXPECT_EQ(row(1, 1, 10, {0xA0, 0x40}), (Pixels{255, 0, 255, 0, 0, 0, 0, 0, 0, 255}));
  EXPECT_EQ(row(1, 0, 3, {0xA0}), (Pixels{0, 255, 0}));
  EXPECT_EQ(row(2, 1, 5, {0x1B, 0x80}), (Pixels{0, 85, 170, 255, 170}));
  EXPECT_EQ(row(4, 1, 3, {0x0F, 0x70}), (Pixels{0, 255, 119}));
  EXPECT_EQ(row(4, 0, 3, {0x0F, 0x70}), (Pixels{255, 0, 136}));
  EXPECT_EQ(row(8, 0, 3, {0, 255, 10}), (Pixels{255, 0, 245}));
  // Indices 1, 2 and 3; the colours of 16 bits keep their high byte.  The map is of shorts.
  Tiff palette = strip(3, 1, 2, 3, {0x6C});
  palette.shorts[kColorMap] = {0x100, 0x2FF, 0x300, 0x400, 0xA00, 0xB00, 0xC00, 0xDFF, 0x1100, 0x1200, 0x1300, 0x1400};
  EXPECT_EQ(read_tiff(palette, ColorMode::rgb).pixels, (Pixels{2, 11, 18, 3, 12, 19, 4, 13, 20}));
  EXPECT_TRUE(testing::contains(tiff_refusal(strip(3, 1, 2, 3, {0x6C})), "test: expected a complete TIFF image, got "))
      << "without its palette";
}

// A grey image of 20 × 18 pixels in four tiles of 16 × 16, whose right and lower ones are partly outside.
TEST(Tiff, TilesAreCutAtTheEdges) {
  const auto value = [](uint32_t x, uint32_t y, uint32_t c) { return static_cast<uint8_t>(x + 11 * y + 101 * c); };
  const auto tiles_of = [&](uint32_t channels, bool is_planar) {
    std::vector<Pixels> tiles;
    for (uint32_t plane = 0; plane < (is_planar ? channels : 1); ++plane) {
      for (uint32_t top = 0; top < 18; top += 16) {
        for (uint32_t left = 0; left < 20; left += 16) {
          Pixels& tile = tiles.emplace_back();
          for (uint32_t y = top; y < top + 16; ++y) {
            for (uint32_t x = left; x < left + 16; ++x) {
              if (is_planar) {
                tile.push_back(value(x, y, plane));
              } else {
                for (uint32_t c = 0; c < channels; ++c) tile.push_back(value(x, y, c));
              }
            }
          }
        }
      }
    }
    return tiles;
  };
  for (const uint32_t channels : {1u, 3u}) {
    for (const bool is_planar : {false, true}) {
      Tiff tiff{{{kTiffWidth, {20}},
                 {kTiffHeight, {18}},
                 {kBits, std::vector<uint32_t>(channels, 8)},
                 {kPhotometric, {channels == 3 ? 2u : 1u}},
                 {kSamples, {channels}},
                 {kPlanar, {is_planar ? 2u : 1u}},
                 {kTileWidth, {16}},
                 {kTileHeight, {16}}},
                tiles_of(channels, is_planar)};
      const Image image = read_tiff(tiff, channels == 3 ? ColorMode::rgb : ColorMode::grey);
      ASSERT_EQ(image.width, 20);
      ASSERT_EQ(image.height, 18);
      for (uint32_t y = 0; y < 18; ++y) {
        for (uint32_t x = 0; x < 20; ++x) {
          for (uint32_t c = 0; c < channels; ++c)
            ASSERT_EQ(image.row(y)[x * channels + c], value(x, y, c)) << x << " " << y << " " << is_planar;
        }
      }
      tiff.blocks.back().resize(200);
      EXPECT_TRUE(testing::contains(tiff_refusal(tiff), "test: expected a complete TIFF image, got ")) << is_planar;
    }
  }
}

// Alpha that the colours are multiplied with is divided out; other samples behind the colours are dropped.
TEST(Tiff, ColoursAreThoseWithoutAlpha) {
  const auto colours = [](uint32_t extra, const Pixels& data) {
    Tiff tiff = strip(static_cast<uint32_t>(data.size() / 4), 1, 8, 2, data);
    tiff.tags[kSamples] = {4};
    tiff.tags[kBits] = {8, 8, 8, 8};
    tiff.tags[kExtra] = {extra};
    return read_tiff(tiff, ColorMode::rgb).pixels;
  };
  const Pixels data{100, 50, 0, 100, 7, 8, 9, 0, 30, 60, 200, 128};
  EXPECT_EQ(colours(1, data), (Pixels{255, 127, 0, 7, 8, 9, 59, 119, 255}));
  EXPECT_EQ(colours(2, data), (Pixels{100, 50, 0, 7, 8, 9, 30, 60, 200})) << "not multiplied";
  EXPECT_EQ(colours(0, data), (Pixels{100, 50, 0, 7, 8, 9, 30, 60, 200})) << "of no known kind";
}

TEST(Tiff, InkIsSubtractedFromWhite) {
  Tiff tiff = strip(2, 1, 8, 5, {0, 255, 100, 0, 0, 0, 0, 51});
  tiff.tags[kSamples] = {4};
  tiff.tags[kBits] = {8, 8, 8, 8};
  EXPECT_EQ(read_tiff(tiff, ColorMode::rgb).pixels, (Pixels{255, 0, 155, 204, 204, 204}));
}

TEST(Tiff, ColoursOf16BitsKeepTheirHighByte) {
  Tiff tiff = strip(2, 1, 16, 2, bytes_of<uint16_t>({0x01FF, 0x8000, 0xFFFF, 0x00FF, 0x7F01, 0x1234}));
  tiff.tags[kSamples] = {3};
  tiff.tags[kBits] = {16, 16, 16};
  EXPECT_EQ(read_tiff(tiff, ColorMode::rgb).pixels, (Pixels{1, 128, 255, 0, 127, 18}));
}

// The values of Pillow 13, whose LittleCMS interpolates a table.
TEST(Tiff, CielabColoursBecomeSrgb) {
  Tiff tiff = strip(
      8, 1, 8, 8, {255, 0, 0, 128, 0, 0, 0, 0, 0, 200, 20, 30, 150, 216, 35, 100, 30, 196, 180, 206, 236, 60, 50, 40});
  tiff.tags[kSamples] = {3};
  tiff.tags[kBits] = {8, 8, 8};
  const Pixels pillow{254, 255, 254, 119, 119, 119, 1, 0,   1,   242, 179, 139,
                      74,  159, 75,  88,  77,  192, 0, 197, 207, 122, 0,   0};
  const Pixels pixels = read_tiff(tiff, ColorMode::rgb).pixels;
  ASSERT_EQ(pixels.size(), pillow.size());
  for (size_t i = 0; i < pixels.size(); ++i) EXPECT_NEAR(pixels[i], pillow[i], 2) << i;
}

// libtiff converts what is not read here, such as signed colours; its rows are from the top, too.
TEST(Tiff, OtherKindsAreConvertedByTheLibrary) {
  Tiff tiff = strip(2, 2, 8, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  tiff.tags[kSamples] = {3};
  tiff.tags[kBits] = {8, 8, 8};
  tiff.tags[kFormat] = {2, 2, 2};
  EXPECT_EQ(read_tiff(tiff, ColorMode::rgb).pixels, (Pixels{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  Tiff undefined = strip(2, 1, 24, 1, {0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(testing::contains(tiff_refusal(undefined), "test: expected a complete TIFF image, got ")) << "24 bits";
}

TEST(Tiff, TheOrientationIsApplied) {
  Tiff tiff = strip(3, 1, 8, 1, {10, 20, 30});
  tiff.tags[kOrientation] = {6};
  const Image image = read_tiff(tiff);
  EXPECT_EQ(image.width, 1);
  EXPECT_EQ(image.height, 3);
  EXPECT_EQ(image.pixels, (Pixels{10, 20, 30}));
  tiff.tags[kOrientation] = {3};
  EXPECT_EQ(read_tiff(tiff).pixels, (Pixels{30, 20, 10}));
}

TEST(Tiff, SizesAreCheckedBeforeMemoryIsTaken) {
  Tiff tiff = strip(1 << 20, 1 << 20, 8, 1, {1, 2, 3});
  EXPECT_ERROR(tiff_refusal(tiff), "test", "1048576×1048576");
  tiff = strip(20, 18, 8, 1, {1, 2, 3});
  tiff.tags.erase(278);
  tiff.tags[kTileWidth] = {1 << 16}, tiff.tags[kTileHeight] = {1 << 17};
  EXPECT_ERROR(tiff_refusal(tiff), "test", "65536×131072") << "of a tile";
  tiff = strip(0, 3, 8, 1, {1, 2, 3});
  EXPECT_NE(tiff_refusal(tiff), "");
}

TEST(Tiff, ColoursNeedTheirSamples) {
  EXPECT_TRUE(testing::contains(tiff_refusal(strip(2, 1, 8, 2, {1, 2})), "test: expected a complete TIFF image, got "))
      << "one sample of three";
}

}  // namespace
}  // namespace vitrail::image
