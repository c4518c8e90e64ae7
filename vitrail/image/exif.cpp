// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/exif_internal.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "vitrail/image/riff_internal.h"

namespace vitrail::image {
namespace {

std::string_view chars_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

uint32_t number(std::string_view data, size_t at, size_t length, bool little_endian) {
  uint32_t value = 0;
  for (size_t i = 0; i < length; ++i) {
    value = value << 8 | static_cast<uint8_t>(data[little_endian ? at + length - 1 - i : at + i]);
  }
  return value;
}

struct Metadata {
  std::string exif, xmp;
};

// JPEG: the APP1 segments before the first scan.  A long EXIF block spans several.
Metadata jpeg_metadata(std::string_view file) {
  constexpr std::string_view kExif("Exif\0\0", 6), kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  Metadata found;
  size_t at = 2;
  while (at + 4 <= file.size()) {
    const auto marker = static_cast<uint8_t>(file[at + 1]);
    if (file[at] != '\xff' || marker == 0xda) break;
    if (marker == 0xff) {  // fill bytes before a marker
      ++at;
      continue;
    }
    const size_t length = number(file, at + 2, 2, false);
    if (length < 2 || length > file.size() - at - 2) break;
    std::string_view segment = file.substr(at + 4, length - 2);
    if (marker == 0xe1 && segment.starts_with(kExif)) found.exif += segment.substr(kExif.size());
    if (marker == 0xe1 && segment.starts_with(kXmp)) found.xmp = segment.substr(kXmp.size());
    at += 2 + length;
  }
  return found;
}

Metadata png_metadata(std::string_view file) {
  Metadata found;
  size_t at = 8;
  while (at + 12 <= file.size()) {
    const size_t length = number(file, at, 4, false);
    if (length > file.size() - at - 12) break;
    const std::string_view name = file.substr(at + 4, 4), data = file.substr(at + 8, length);
    if (name == "eXIf") found.exif = data;
    if (name == "iTXt" && data.starts_with("XML:com.adobe.xmp")) found.xmp = data;
    at += 12 + length;
  }
  return found;
}

Metadata webp_metadata(Bytes file) {
  Metadata found;
  if (const auto chunk = find_riff_chunk(file, "EXIF")) found.exif = chars_of(*chunk);
  if (const auto chunk = find_riff_chunk(file, "XMP ")) found.xmp = chars_of(*chunk);
  return found;
}

// The orientation tag (0x0112) in the first directory of a TIFF structure.
std::optional<uint32_t> tiff_orientation(std::string_view tiff) {
  while (tiff.starts_with(std::string_view("Exif\0\0", 6))) tiff.remove_prefix(6);
  if (tiff.size() < 8) return std::nullopt;
  const bool little = tiff.starts_with("II");
  if ((!little && !tiff.starts_with("MM")) || number(tiff, 2, 2, little) != 42) return std::nullopt;
  const size_t directory = number(tiff, 4, 4, little);
  if (directory + 2 > tiff.size()) return std::nullopt;
  const size_t entries = number(tiff, directory, 2, little);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;  // tag, type, count, value
    if (at + 12 > tiff.size()) break;
    if (number(tiff, at, 2, little) != 0x0112 || number(tiff, at + 4, 4, little) != 1) continue;
    switch (number(tiff, at + 2, 2, little)) {
      case 1:
        return number(tiff, at + 8, 1, little);
      case 3:
        return number(tiff, at + 8, 2, little);
      case 4:
        return number(tiff, at + 8, 4, little);
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

// tiff:Orientation="6" or <tiff:Orientation>6</…>
std::optional<uint32_t> xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view value = xmp.substr(at + kName.size());
    if (value.starts_with("=\"")) {
      value.remove_prefix(2);
    } else if (value.starts_with(">")) {
      value.remove_prefix(1);
    } else {
      continue;
    }
    if (!value.empty() && value[0] >= '0' && value[0] <= '9') return static_cast<uint32_t>(value[0] - '0');
  }
  return std::nullopt;
}

}  // namespace

int exif_orientation(Bytes file) {
  const std::string_view text = chars_of(file);
  Metadata found;
  if (text.starts_with("\xff\xd8")) found = jpeg_metadata(text);
  if (text.starts_with("\x89PNG")) found = png_metadata(text);
  if (text.starts_with("RIFF")) found = webp_metadata(file);
  std::optional<uint32_t> orientation = tiff_orientation(found.exif);
  if (!orientation) orientation = xmp_orientation(found.xmp);
  return orientation && *orientation >= 1 && *orientation <= 8 ? static_cast<int>(*orientation) : 1;
}

Image exif_transpose(Image image, int orientation) {
  if (orientation == 1) return image;
  // Orientations 5 to 8 transpose the image.  Then columns, rows, or both are mirrored.
  const bool transposed = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Image result = transposed ? make_image(image.height, image.width, image.channels)
                            : make_image(image.width, image.height, image.channels);
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x) {
      const int64_t u = mirror_x ? result.width - 1 - x : x, v = mirror_y ? result.height - 1 - y : y;
      const uint8_t* from = transposed ? image.row(u) + v * image.channels : image.row(v) + u * image.channels;
      std::copy_n(from, image.channels, result.row(y) + x * image.channels);
    }
  }
  return result;
}

}  // namespace vitrail::image
