// SPDX-License-Identifier: Apache-2.0
// Decodes PNG with libpng as Pillow does: alpha, transparent colours, gamma and colour profiles are ignored; 16-bit
// colour keeps its high byte, 16-bit grey is clamped at 255.
//
// libpng reports errors by longjmp.  Functions that call setjmp have no local objects with destructors; the state is in
// a PngReader that outlives them.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/label_image.h"

namespace vitrail::image {
namespace {

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes left;
  std::jmp_buf failed;
  char message[256] = "";

  png_uint_32 width = 0, height = 0;
  int depth = 0, color_type = 0, passes = 1;

  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_png_error(png_structp png, png_const_charp message) {
  PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader.message, message, sizeof(reader.message) - 1);
  std::longjmp(reader.failed, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader.left.size()) png_error(png, "the end of the file");
  std::memcpy(out, reader.left.data(), count);
  reader.left = reader.left.subspan(count);
}

// Chunks that do not affect the pixels.  They are not parsed, so errors in them are ignored.
constexpr png_byte kIgnoredChunks[] =
    "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0tRNS\0zTXt";

bool read_header(PngReader& reader) {
  if (setjmp(reader.failed) != 0) return false;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_png_error, ignore_png_warning);
  if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) {
    std::strcpy(reader.message, "no memory");
    return false;
  }
  png_set_read_fn(reader.png, &reader, read_bytes);
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller checks width · height
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, kIgnoredChunks, sizeof(kIgnoredChunks) / 5);
  png_read_info(reader.png, reader.info);
  png_get_IHDR(reader.png, reader.info, &reader.width, &reader.height, &reader.depth, &reader.color_type, nullptr,
               nullptr, nullptr);
  return true;
}

// What grey below 8 bits means: a lightness, or a number as it is.
enum class GreyValues : uint8_t { lightness, numbers };

// Requests one byte per sample without alpha; indices and grey below 8 bits are unpacked.  libpng allocates rows here.
bool start(PngReader& reader, GreyValues values = GreyValues::lightness) {
  if (setjmp(reader.failed) != 0) return false;
  // Pixel data follows.  As in Pillow, its chunk checksums are ignored; zlib checks its own.
  png_set_crc_action(reader.png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
  png_set_packing(reader.png);  // indices below 8 bits to a byte each
  const bool widens = values == GreyValues::lightness;
  if (widens && reader.color_type == PNG_COLOR_TYPE_GRAY && reader.depth < 8)
    png_set_expand_gray_1_2_4_to_8(reader.png);
  if ((reader.color_type & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(reader.png);
  // 16-bit grey without alpha keeps 16 bits here: Pillow clamps it, but takes the high byte of all other kinds.
  const bool narrows = widens || reader.color_type != PNG_COLOR_TYPE_GRAY_ALPHA;
  if (narrows && reader.depth == 16 && reader.color_type != PNG_COLOR_TYPE_GRAY) png_set_strip_16(reader.png);
  reader.passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

// `pixels` has height · row_bytes bytes.  An interlaced image is decoded in several passes over them.
bool read_png_pixels(PngReader& reader, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(reader.failed) != 0) return false;
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) png_error(reader.png, "unexpected row length");
  for (int pass = 0; pass < reader.passes; ++pass) {
    for (png_uint_32 y = 0; y < reader.height; ++y) png_read_row(reader.png, pixels + y * row_bytes, nullptr);
  }
  return true;
}

Palette palette_of(PngReader& reader) {
  Palette palette{};
  png_colorp colors = nullptr;
  int count = 0;
  png_get_PLTE(reader.png, reader.info, &colors, &count);
  for (int i = 0; i < count && i < 256; ++i) palette[i] = {colors[i].red, colors[i].green, colors[i].blue};
  return palette;
}

// Clamps big-endian 16-bit values, two bytes each, to 8 bits.
Image clamp_16_bits(const Image& pairs) {
  Image grey = make_image(pairs.width, pairs.height, 1);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    grey.pixels[i] = pairs.pixels[2 * i] != 0 ? 255 : pairs.pixels[2 * i + 1];
  }
  return grey;
}

}  // namespace

Image decode_png(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  PngReader reader;
  reader.left = bytes;
  if (!read_header(reader)) throw Error(where, "a complete PNG image", reader.message);
  check_size(reader.width, reader.height, options.max_pixels, where);
  reserve_pixels(where, reader.width, reader.height);
  const bool color = (reader.color_type & PNG_COLOR_MASK_COLOR) != 0;
  const bool indexed = reader.color_type == PNG_COLOR_TYPE_PALETTE;
  const bool wide_grey = reader.color_type == PNG_COLOR_TYPE_GRAY && reader.depth == 16;
  Image image = make_image(reader.width, reader.height, wide_grey ? 2 : color && !indexed ? 3 : 1);
  if (!start(reader) || !read_png_pixels(reader, image.pixels.data(), static_cast<size_t>(image.row_bytes()))) {
    throw Error(where, "a complete PNG image", reader.message);
  }
  if (indexed) return from_palette(image.pixels, image.width, image.height, palette_of(reader), options.mode);
  if (wide_grey) {
    image = clamp_16_bits(image);
    check_clamped_grey(image, where);
  }
  return to_mode(std::move(image), options.mode);
}

LabelImage decode_labels(Bytes bytes, const std::string& where) {
  constexpr const char* kExpected = "a PNG of class indices: with a palette, or grey of up to 16 bits";
  PngReader reader;
  reader.left = bytes;
  if (!read_header(reader)) throw Error(where, kExpected, reader.message);
  check_size(reader.width, reader.height, DecodeOptions{}.max_pixels, where);
  const bool indexed = reader.color_type == PNG_COLOR_TYPE_PALETTE;
  if (!indexed && (reader.color_type & PNG_COLOR_MASK_COLOR) != 0)
    throw Error(where, kExpected, "colours without a palette");
  const bool wide = reader.depth == 16;
  reserve_pixels(where, reader.width, reader.height, sizeof(int32_t));
  Image image = make_image(reader.width, reader.height, wide ? 2 : 1);
  if (!start(reader, GreyValues::numbers) ||
      !read_png_pixels(reader, image.pixels.data(), static_cast<size_t>(image.row_bytes())))
    throw Error(where, "a complete PNG image", reader.message);
  LabelImage result{image.width, image.height, {}};
  result.labels.reserve(static_cast<size_t>(image.width * image.height));
  for (size_t i = 0; i < image.pixels.size(); i += wide ? 2 : 1)
    result.labels.push_back(wide ? image.pixels[i] << 8 | image.pixels[i + 1] : image.pixels[i]);  // big-endian
  return result;
}

LabelImage read_labels(const std::filesystem::path& path) {
  return decode_labels(read_file(path, kMaxFileBytes), path.string());
}

}  // namespace vitrail::image
