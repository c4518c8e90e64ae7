// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/decode.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstring>
#include <new>
#include <string_view>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/exif_internal.h"
#include "vitrail/image/file_kind_internal.h"

namespace vitrail::image {
namespace {

using Codec = Image (*)(Bytes, const DecodeOptions&, const std::string&);

struct Format {
  std::string_view magic;
  Codec codec;
};

constexpr std::array<Format, 8> kFormats{{
    {"\xff\xd8\xff", decode_jpeg},
    {"\x89PNG\r\n\x1a\n", decode_png},
    {"GIF8", decode_gif},
    {"BM", decode_bmp},
    {{"II*\0", 4}, decode_tiff},
    {{"MM\0*", 4}, decode_tiff},
    {{"II+\0", 4}, decode_tiff},  // BigTIFF
    {{"MM\0+", 4}, decode_tiff},
}};

bool starts_with(Bytes bytes, std::string_view text, size_t offset = 0) {
  return bytes.size() >= offset + text.size() && std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

// "P1" to "P6" before white space or a comment.
bool is_pnm(Bytes bytes) {
  if (bytes.size() < 3 || !starts_with(bytes, "P")) return false;
  const auto digit = std::to_integer<char>(bytes[1]), next = std::to_integer<char>(bytes[2]);
  return digit >= '1' && digit <= '6' && (next == ' ' || next == '#' || (next >= '\t' && next <= '\r'));
}

Codec codec_for(Bytes bytes) {
  for (const Format& format : kFormats) {
    if (starts_with(bytes, format.magic)) return format.codec;
  }
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return decode_webp;
  return is_pnm(bytes) ? decode_pnm : nullptr;
}

}  // namespace

bool has_image_signature(std::span<const std::byte> bytes) { return codec_for(bytes) != nullptr; }

void check_size(int64_t width, int64_t height, int64_t max_pixels, const std::string& where) {
  if (width <= 0 || height <= 0) throw Error(where, "an image with pixels", str(width, "×", height));
  if (width > max_pixels / height) {
    throw Error(where, str("at most ", max_pixels, " pixels"), str(width, "×", height));
  }
}

void check_clamped_grey(const Image& grey, const std::string& where) {
  static std::atomic<bool> told = false;
  if (std::ranges::find(grey.pixels, uint8_t{255}) == grey.pixels.end() || told.exchange(true)) return;
  warn(where +
       ": grey of more than 8 bits, in which all values from 255 on are white, as Pillow reads it: scale such "
       "images to 8 bits (other images like this one are not named)");
}

Image decode(std::span<const std::byte> bytes, const DecodeOptions& options, const std::string& where) {
  const Codec codec = codec_for(bytes);
  if (codec == nullptr) throw Error(where, "a JPEG, PNG, WebP, GIF, BMP, TIFF or PPM image", describe_file(bytes));
  try {
    Image image = codec(bytes, options, where);
    if (options.apply_exif) image = exif_transpose(std::move(image), exif_orientation(bytes));
    return image;
  } catch (const std::bad_alloc&) {
    throw Error(where, "memory for the image", "an image that is too large for this machine");
  }
}

Image read_image(const std::filesystem::path& path, const DecodeOptions& options) {
  return decode(read_file(path, kMaxFileBytes), options, path.string());
}

bool is_image_path(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array kExtensions{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif",
                                   ".bmp", ".dib",  ".tif", ".tiff", ".pbm", ".pgm",  ".ppm",  ".pnm"};
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

}  // namespace vitrail::image
