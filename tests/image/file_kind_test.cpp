// SPDX-License-Identifier: Apache-2.0
// What files that are no images are called, in whole sentences, and where their marks have to be.
#include "vitrail/image/file_kind_internal.h"

#include <gtest/gtest.h>

#include <string>

namespace vitrail::image {
namespace {

using namespace std::string_literals;

std::string described(const std::string& bytes) { return describe_file(std::as_bytes(std::span(bytes))); }

// An ISO media file whose first box has this size and these brands.
std::string media(size_t box, const std::string& brands) {
  return "\0\0\0"s + static_cast<char>(box) + "ftyp" + brands;
}

TEST(FileKind, SaysWhatToDo) {
  const std::string convert = ", which is not read: convert it to JPEG or PNG";
  const std::pair<std::string, std::string> files[] = {
      {"", "an empty file"},
      {"8BPS\0\x01"s, "PSD (Photoshop)" + convert},
      {"\0\0\x02\0\0\0\0"s, "TGA" + convert},
      {"%PDF-1.7", "PDF" + convert},
      {"version https://git-lfs.github.com", "a Git LFS pointer: fetch it with git lfs pull"},
      {"\0\x05\x16\x07\0"s, "an AppleDouble file of macOS"},
      {"PK\x03\x04\x14", "a zip archive"},
      {"<svg>", "SVG, which is not read: convert it to PNG"},
      {"<!doctype HTML>", "an HTML page: the download gave a web page instead of the image"},
      {"<x><head>", "an HTML page: the download gave a web page instead of the image"},
      {"<x><body>", "an HTML page: the download gave a web page instead of the image"},
      {"<x><html>", "an HTML page: the download gave a web page instead of the image"},
      {"<note>", "an XML or HTML file"},
      {"{\"a\":1}", "a JSON file"},
      {" \t\r\n{\n}", "a JSON file"},
      {"{ }", "an unknown format"},
      {"a <svg>", "an unknown format"},
      {"\0\0\0"s, "a file of zeros"},
      {"\0\0\0\x01"s, "an unknown format"},
      {"8BP", "an unknown format"},
      {" 8BPS", "an unknown format"},
      {"\xef\xbb\xbf\xef\xbb\xbf<svg>", "an unknown format"}};
  for (const auto& [bytes, text] : files) EXPECT_EQ(described(bytes), text) << bytes;
}

TEST(FileKind, BrandsAreThoseOfTheFirstBox) {
  const std::string convert = ", which is not read: convert it to JPEG or PNG";
  EXPECT_EQ(described(media(0x14, "isom\0\0\0\0avif"s)), "AVIF" + convert);
  EXPECT_EQ(described(media(0x10, "isom\0\0\0\0avif"s)), "a video or another ISO media file" + convert)
      << "behind the box";
  EXPECT_EQ(described(media(0x13, "isom\0\0\0\0avif"s)), "a video or another ISO media file" + convert);
  EXPECT_EQ(described(media(0x14, "heic\0\0\0\0avif"s)), "AVIF" + convert) << "AVIF precedes HEIC";
  EXPECT_EQ(described(media(0x10, "mif1\0\0\0\0"s)), "HEIC" + convert);
  const std::string far(44, 'x');
  EXPECT_EQ(described(media(0xF0, "isom\0\0\0\0"s + far + "avif")), "AVIF" + convert) << "up to 64 bytes";
  EXPECT_EQ(described(media(0xF0, "isom\0\0\0\0"s + far + "x" + "avif")),
            "a video or another ISO media file" + convert);
  EXPECT_EQ(described(media(0x18, "crx \0\0\0\0crx isom"s)), "a Canon raw image" + convert);
  EXPECT_EQ(described("\0\0\0\x20"s + "ftyq" + "avif"), "an unknown format");
  EXPECT_EQ(described("\0\0\0"s + "\xFF"), "an unknown format");
}

TEST(FileKind, TagsAreLookedForAtTheBeginning) {
  EXPECT_EQ(described("<a>" + std::string(1017, ' ') + "<svg"), "SVG, which is not read: convert it to PNG");
  EXPECT_EQ(described("<a>" + std::string(1018, ' ') + "<svg"), "an XML or HTML file");
  EXPECT_EQ(described(std::string(2000, ' ') + "<SVG"), "SVG, which is not read: convert it to PNG")
      << "without the spaces in front";
  EXPECT_EQ(described("\xef\xbb\xbf  <Html>"), "an HTML page: the download gave a web page instead of the image");
  EXPECT_EQ(described(std::string(50, ' ')), "an unknown format");
}

TEST(FileKind, DicomIsKnownBehindItsPreamble) {
  EXPECT_TRUE(described(std::string(128, 'x') + "DICM").starts_with("DICOM, "));
  EXPECT_EQ(described(std::string(127, 'x') + "DICM"), "an unknown format");
  EXPECT_EQ(described(std::string(128, 'x') + "DIC"), "an unknown format");
}

}  // namespace
}  // namespace vitrail::image
