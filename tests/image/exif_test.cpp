// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/exif_internal.h"

#include <gtest/gtest.h>

#include <string>

#include "vitrail/image/color_internal.h"
#include "vitrail/image/riff_internal.h"

namespace vitrail::image {
namespace {

using namespace std::string_literals;

std::string big(size_t value, int bytes) {
  std::string text;
  for (int i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string little(size_t value, int bytes) {
  const std::string text = big(value, bytes);
  return {text.rbegin(), text.rend()};
}
int orientation_of(const std::string& file) { return exif_orientation(std::as_bytes(std::span(file))); }

struct Tag {
  size_t tag = 0x112, type = 3, count = 1, value = 6;
};
// A TIFF structure with one directory.
std::string tiff(const std::vector<Tag>& tags, bool is_little = true) {
  const auto number = [&](size_t value, int bytes) { return is_little ? little(value, bytes) : big(value, bytes); };
  std::string text = (is_little ? "II" : "MM") + number(42, 2) + number(8, 4) + number(tags.size(), 2);
  for (const Tag& tag : tags) {
    const int bytes = tag.type == 1 ? 1 : tag.type == 3 ? 2 : 4;
    text += number(tag.tag, 2) + number(tag.type, 2) + number(tag.count, 4) + number(tag.value, bytes) +
            std::string(static_cast<size_t>(4 - bytes), '\0');
  }
  return text + number(0, 4);
}
std::string segment(char marker, const std::string& content) {
  return "\xff"s + marker + big(content.size() + 2, 2) + content;
}
std::string jpeg(const std::string& segments) { return "\xff\xd8" + segments + "\xff\xda\0\x02scan"s; }
std::string exif_jpeg(const std::string& exif) { return jpeg(segment('\xe1', "Exif\0\0"s + exif)); }
std::string xmp(const std::string& text) { return segment('\xe1', "http://ns.adobe.com/xap/1.0/\0"s + text); }
std::string chunk(const std::string& name, const std::string& data) {
  return big(data.size(), 4) + name + data + "crc.";
}
std::string png(const std::string& chunks) { return "\x89PNG\r\n\x1a\n" + chunks; }

TEST(ExifOrientation, IsTheTagOfTheFirstDirectory) {
  for (const bool is_little : {true, false}) {
    for (size_t value = 0; value < 12; ++value) {
      const int want = value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
      for (const size_t type : {1, 3, 4}) {
        const std::string block = tiff({{0x100, 4, 1, 7}, {.type = type, .value = value}}, is_little);
        EXPECT_EQ(orientation_of(exif_jpeg(block)), want) << is_little << " " << type << " " << value;
      }
    }
  }
  EXPECT_EQ(orientation_of(exif_jpeg(tiff({{.type = 2}}))), 1) << "text";
  EXPECT_EQ(orientation_of(exif_jpeg(tiff({{.count = 2}}))), 1) << "two values";
  EXPECT_EQ(orientation_of(exif_jpeg(tiff({}))), 1);
  EXPECT_EQ(orientation_of(exif_jpeg("Exif\0\0"s + tiff({{}}))), 6) << "a second prefix";
}

// A block of more than 64 KiB spans several segments.
TEST(ExifOrientation, ALongBlockIsInSeveralSegments) {
  const std::string block = tiff({{0x100, 4, 1, 7}, {}});
  for (const size_t cut : {size_t{4}, size_t{12}, block.size() - 9}) {
    const std::string first = segment('\xe1', "Exif\0\0"s + block.substr(0, cut)),
                      second = segment('\xe1', "Exif\0\0"s + block.substr(cut));
    EXPECT_EQ(orientation_of(jpeg(segment('\xe0', "JFIF\0"s) + first + second)), 6) << cut;
  }
}

TEST(ExifOrientation, OfAJpegIsBeforeItsFirstScan) {
  const std::string exif = segment('\xe1', "Exif\0\0"s + tiff({{}}));
  EXPECT_EQ(orientation_of(jpeg("\xff\xff\xff" + exif)), 6) << "fill bytes before a marker";
  EXPECT_EQ(orientation_of(jpeg("") + exif), 1) << "after the scan";
  EXPECT_EQ(orientation_of(jpeg("x" + exif)), 1) << "no marker";
  EXPECT_EQ(orientation_of(jpeg(segment('\xe2', "Exif\0\0"s + tiff({{}})))), 1) << "another kind of segment";
  const std::string whole = jpeg(exif);
  for (size_t length = 0; length < whole.size(); ++length) {
    const int got = orientation_of(whole.substr(0, length));
    EXPECT_EQ(got, length >= 2 + exif.size() ? 6 : 1) << length;
  }
}

TEST(ExifOrientation, OfXmpCountsWithoutAnExifTag) {
  EXPECT_EQ(orientation_of(jpeg(xmp("<a tiff:Orientation=\"8\"/>"))), 8);
  EXPECT_EQ(orientation_of(jpeg(xmp("<tiff:Orientation>3</tiff:Orientation>"))), 3);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation is tiff:Orientation=\"5\""))), 5);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation=\"9\""))), 1);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation=\"\""))), 1);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation"))), 1);
  const std::string exif = segment('\xe1', "Exif\0\0"s + tiff({{}}));
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation=\"8\"") + exif)), 6);
  EXPECT_EQ(orientation_of(png(chunk("iTXt", "XML:com.adobe.xmp\0\0\0\0\0<x tiff:Orientation=\"4\">"s))), 4);
  EXPECT_EQ(orientation_of(png(chunk("iTXt", "Comment\0\0\0\0\0tiff:Orientation=\"4\""s))), 1);
}

TEST(ExifOrientation, OfPngAndWebpIsInAChunk) {
  EXPECT_EQ(orientation_of(png(chunk("IHDR", "x") + chunk("eXIf", tiff({{.value = 7}})))), 7);
  EXPECT_EQ(orientation_of(png(big(1000, 4) + "eXIf")), 1);
  const auto riff_chunk = [](const std::string& name, const std::string& data) {
    return name + little(data.size(), 4) + data + std::string(data.size() % 2, '\0');
  };
  const std::string begin = "RIFF....WEBP";
  EXPECT_EQ(orientation_of(begin + riff_chunk("VP8 ", "odd") + riff_chunk("EXIF", tiff({{.value = 2}}))), 2);
  EXPECT_EQ(orientation_of(begin + riff_chunk("XMP ", "tiff:Orientation=\"3\"")), 3);
  EXPECT_EQ(orientation_of("II*\0"s), 1);
  EXPECT_EQ(orientation_of(""), 1);
}

TEST(RiffChunk, IsTheFirstOfItsName) {
  const std::string file = "RIFF....WEBPabcd\x03\0\0\0xyz\0efgh\0\0\0\0abcd\x01\0\0\0q\0"s;
  const auto found = [&](const std::string& bytes, const char* name) -> std::string {
    const auto chunk = find_riff_chunk(std::as_bytes(std::span(bytes)), name);
    return chunk ? std::string(reinterpret_cast<const char*>(chunk->data()), chunk->size()) : "none";
  };
  EXPECT_EQ(found(file, "abcd"), "xyz");
  EXPECT_EQ(found(file, "efgh"), "");
  EXPECT_EQ(found(file, "none"), "none");
  EXPECT_EQ(found(file.substr(0, 22), "abcd"), "none") << "truncated";
  EXPECT_EQ(found(file.substr(0, 23), "abcd"), "xyz") << "without its padding";
  EXPECT_EQ(found(file.substr(0, 19), "abcd"), "none");
}

// Where each source pixel goes, from the table of the EXIF standard: the visual place of row 0 and column 0.
TEST(ExifTranspose, PutsRowsAndColumnsWhereTheStandardSays) {
  for (const int64_t channels : {1, 3}) {
    Image image = make_image(3, 2, channels);
    for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i);
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const Image result = exif_transpose(image, orientation);
      const bool swapped = orientation >= 5;
      ASSERT_EQ(result.width, swapped ? 2 : 3) << orientation;
      ASSERT_EQ(result.height, swapped ? 3 : 2) << orientation;
      for (int64_t y = 0; y < 2; ++y) {
        for (int64_t x = 0; x < 3; ++x) {
          const std::array<std::array<int64_t, 2>, 8> places{
              {{x, y}, {2 - x, y}, {2 - x, 1 - y}, {x, 1 - y}, {y, x}, {1 - y, x}, {1 - y, 2 - x}, {y, 2 - x}}};
          const auto [to_x, to_y] = places[static_cast<size_t>(orientation - 1)];
          for (int64_t c = 0; c < channels; ++c) {
            EXPECT_EQ(result.row(to_y)[to_x * channels + c], image.row(y)[x * channels + c]) << orientation;
          }
        }
      }
    }
  }
}

// A block that is cut off has an orientation as soon as its entry is complete.
TEST(ExifOrientation, NeedsTheWholeEntryOfItsTag) {
  for (const bool is_little : {true, false}) {
    const std::string block = tiff({{}}, is_little);
    for (size_t length = 0; length <= block.size(); ++length) {
      EXPECT_EQ(orientation_of(png(chunk("eXIf", block.substr(0, length)))), length >= 22 ? 6 : 1) << length;
    }
  }
  const std::string two = tiff({{0x100, 4, 1, 7}, {.value = 5}});
  for (size_t length = 0; length <= two.size(); ++length)
    EXPECT_EQ(orientation_of(png(chunk("eXIf", two.substr(0, length)))), length >= 34 ? 5 : 1) << length;
}

TEST(ExifOrientation, AnotherKindOfBlockHasNone) {
  std::string block = tiff({{}});
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = block;
    return orientation_of(png(chunk("eXIf", changed.replace(at, bytes.size(), bytes))));
  };
  EXPECT_EQ(with(0, "II"), 6);
  EXPECT_EQ(with(0, "XX"), 1);
  EXPECT_EQ(with(0, "MM"), 1) << "the other order of bytes";
  EXPECT_EQ(with(2, "\x2b"), 1) << "the number of a BigTIFF";
  EXPECT_EQ(with(4, "\x09"), 1) << "another place of the directory";
  EXPECT_EQ(with(4, "\xff\xff\xff\xff"), 1);
  EXPECT_EQ(with(10, "\x13"), 1) << "another tag";
  const std::string shifted = block.substr(0, 4) + little(20, 4) + std::string(12, 'x') + block.substr(8);
  EXPECT_EQ(orientation_of(png(chunk("eXIf", shifted))), 6) << "a directory further behind";
}

// An orientation out of range is one, so that the packet is not asked.
TEST(ExifOrientation, OfTheBlockPrecedesThePacketAlsoOutOfRange) {
  const std::string packet = xmp("tiff:Orientation=\"8\"");
  EXPECT_EQ(orientation_of(jpeg(packet + segment('\xe1', "Exif\0\0"s + tiff({{.value = 9}})))), 1);
  EXPECT_EQ(orientation_of(jpeg(packet + segment('\xe1', "Exif\0\0"s + tiff({{0x100, 4, 1, 7}})))), 8);
  EXPECT_EQ(orientation_of(jpeg(packet + xmp("tiff:Orientation=\"2\""))), 2) << "the last packet of a JPEG";
  EXPECT_EQ(orientation_of(png(chunk("eXIf", tiff({{.value = 3}})) + chunk("eXIf", tiff({{.value = 4}})))), 4);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation=\"0\""))), 1);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation=\"x\" tiff:Orientation=\"7\""))), 7);
  EXPECT_EQ(orientation_of(jpeg(xmp("tiff:Orientation=\":\""))), 1) << "the character behind the digits";
}

TEST(ExifOrientation, EndsAtADamagedSegment) {
  const std::string exif = segment('\xe1', "Exif\0\0"s + tiff({{}}));
  for (const size_t length : {0, 1}) EXPECT_EQ(orientation_of(jpeg("\xff\xe0" + big(length, 2) + exif)), 1) << length;
  EXPECT_EQ(orientation_of(jpeg("\xff\xe0" + big(2, 2) + exif)), 6) << "an empty segment";
  EXPECT_EQ(orientation_of("\xff\xd8\xff\xe0" + big(60000, 2) + exif), 1);
}

TEST(ExifOrientation, NeedsOneValueAndASegmentWithItsLength) {
  EXPECT_EQ(orientation_of(exif_jpeg(tiff({{.count = 0}}))), 1);
  EXPECT_EQ(orientation_of(exif_jpeg(tiff({{.count = 2}, {.value = 5}}))), 5) << "the next entry";
  for (const size_t length : {0, 1}) {
    const std::string segments = "\xff\xe1" + big(length, 2) + "Exif\0\0"s + tiff({{}});
    EXPECT_EQ(orientation_of(jpeg(segments)), 1) << length;
  }
}

}  // namespace
}  // namespace vitrail::image
