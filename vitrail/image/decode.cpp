// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/decode.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <new>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/exif_internal.h"

namespace vitrail::image {
namespace {

using Codec = Image (*)(Bytes, const DecodeOptions&, const std::string&);

struct Format {
  std::string_view magic;
  Codec codec;
};

constexpr std::array<Format, 3> kFormats{{
    {"\xff\xd8\xff", decode_jpeg},
    {"\x89PNG\r\n\x1a\n", decode_png},
    {"GIF8", decode_gif},
}};

bool starts_with(Bytes bytes, std::string_view text, size_t offset = 0) {
  return bytes.size() >= offset + text.size() && std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

Codec codec_for(Bytes bytes) {
  for (const Format& format : kFormats) {
    if (starts_with(bytes, format.magic)) return format.codec;
  }
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return decode_webp;
  return nullptr;
}

// Describes a file that no codec accepts, for the error message.
std::string description(Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  if (starts_with(bytes, "BM")) return "BMP, which is not supported";
  if (starts_with(bytes, {"II*\0", 4}) || starts_with(bytes, {"MM\0*", 4})) return "TIFF, which is not supported";
  if (starts_with(bytes, "ftypavi", 4)) return "AVIF, which is not supported";
  return "an unknown format";
}

}  // namespace

bool has_image_signature(std::span<const std::byte> bytes) { return codec_for(bytes) != nullptr; }

void check_size(int64_t width, int64_t height, int64_t max_pixels, const std::string& where) {
  if (width <= 0 || height <= 0) throw Error(where, "an image with pixels", str(width, "×", height));
  if (width > max_pixels / height) {
    throw Error(where, str("at most ", max_pixels, " pixels"), str(width, "×", height));
  }
}

Image decode(std::span<const std::byte> bytes, const DecodeOptions& options, const std::string& where) {
  const Codec codec = codec_for(bytes);
  if (codec == nullptr) throw Error(where, "a JPEG, PNG, WebP or GIF image", description(bytes));
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
  constexpr std::array kExtensions{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif"};
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

}  // namespace vitrail::image
