// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/encode.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

// libpng reports errors by longjmp.  Objects with destructors are members of this struct, outside the function that
// calls setjmp.
struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<uint8_t> out;
  std::jmp_buf failed;
  char message[256] = "";

  ~Writer() { png_destroy_write_struct(&png, &info); }
};

[[noreturn]] void on_write_error(png_structp png, png_const_charp message) {
  Writer& writer = *static_cast<Writer*>(png_get_error_ptr(png));
  std::strncpy(writer.message, message, sizeof(writer.message) - 1);
  std::longjmp(writer.failed, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

bool append(std::vector<uint8_t>& out, const uint8_t* data, size_t count) noexcept {
  try {
    out.insert(out.end(), data, data + count);
    return true;
  } catch (...) {
    return false;  // an exception must not unwind libpng's frames
  }
}

void write_bytes(png_structp png, png_bytep data, size_t count) {
  if (!append(static_cast<Writer*>(png_get_io_ptr(png))->out, data, count)) png_error(png, "no memory");
}

void flush_nothing(png_structp) {}

// What a PNG stores, in its byte order.
struct Raster {
  int64_t width, height;
  int bits, color_type;
  const uint8_t* bytes;
  int64_t row_bytes;
};

bool write(Writer& writer, const Raster& image) {
  if (setjmp(writer.failed) != 0) return false;
  writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_write_error, ignore_warning);
  if (writer.png != nullptr) writer.info = png_create_info_struct(writer.png);
  if (writer.info == nullptr) return false;
  png_set_write_fn(writer.png, &writer, write_bytes, flush_nothing);
  png_set_user_limits(writer.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
               image.bits, image.color_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer.png, writer.info);
  for (int64_t y = 0; y < image.height; ++y) png_write_row(writer.png, image.bytes + y * image.row_bytes);
  png_write_end(writer.png, nullptr);
  return true;
}

std::vector<uint8_t> encoded(const Raster& image) {
  if (image.width > PNG_UINT_31_MAX || image.height > PNG_UINT_31_MAX) {
    throw Error("encode_png", "at most 2147483647 pixels a side", str(image.width, "×", image.height));
  }
  Writer writer;
  if (!write(writer, image)) throw Error("encode_png", "an image that PNG can represent", writer.message);
  return std::move(writer.out);
}

}  // namespace

std::vector<uint8_t> encode_png(const Image& image) {
  check_image(image, "encode_png");
  return encoded({image.width, image.height, 8, image.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
                  image.pixels.data(), image.row_bytes()});
}

std::vector<uint8_t> encode_png(const Image& image, const Image& alpha) {
  check_image(image, "encode_png");
  check_image(alpha, "encode_png");
  if (alpha.channels != 1 || alpha.width != image.width || alpha.height != image.height)
    throw Error("encode_png", str("alpha of ", image.width, "×", image.height),
                str(alpha.width, "×", alpha.height, " of ", alpha.channels, " channels"));
  std::vector<uint8_t> bytes;
  bytes.reserve(4 * alpha.pixels.size());
  for (size_t i = 0; i < alpha.pixels.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) bytes.push_back(image.pixels[image.channels == 3 ? 3 * i + c : i]);
    bytes.push_back(alpha.pixels[i]);
  }
  return encoded({image.width, image.height, 8, PNG_COLOR_TYPE_RGB_ALPHA, bytes.data(), 4 * image.width});
}

std::vector<uint8_t> encode_png(const Gray16& image) {
  const auto pixels = static_cast<int64_t>(image.values.size());
  if (image.width < 1 || image.height < 1 || pixels % image.width != 0 || pixels / image.width != image.height)
    throw Error("encode_png", str(image.width, "×", image.height, " values"), str(pixels));
  std::vector<uint8_t> bytes;  // big-endian
  bytes.reserve(2 * image.values.size());
  for (const uint16_t value : image.values) {
    bytes.push_back(static_cast<uint8_t>(value >> 8));
    bytes.push_back(static_cast<uint8_t>(value & 255));
  }
  return encoded({image.width, image.height, 16, PNG_COLOR_TYPE_GRAY, bytes.data(), 2 * image.width});
}

void write_png(const std::filesystem::path& path, const Image& image) {
  const std::vector<uint8_t> bytes = encode_png(image);
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace vitrail::image
