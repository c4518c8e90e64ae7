// SPDX-License-Identifier: Apache-2.0
// Decodes the first image of a TIFF file with libtiff, as Pillow does: 16-bit colour keeps its high byte; 16-bit grey,
// integers and floats are clamped at 255; alpha is dropped; the orientation is always applied.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/exif_internal.h"

namespace vitrail::image {
namespace {

// The file in memory, and libtiff's last message.
struct TiffSource {
  Bytes bytes;
  size_t at = 0;
  std::string message = "broken data";
};

TiffSource& source_of(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

tmsize_t read_bytes(thandle_t handle, void* out, tmsize_t count) {
  TiffSource& source = source_of(handle);
  if (count <= 0 || source.at >= source.bytes.size()) return 0;
  const size_t length = std::min(source.bytes.size() - source.at, static_cast<size_t>(count));
  std::memcpy(out, source.bytes.data() + source.at, length);
  source.at += length;
  return static_cast<tmsize_t>(length);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  TiffSource& source = source_of(handle);
  const size_t base = whence == SEEK_CUR ? source.at : whence == SEEK_END ? source.bytes.size() : 0;
  source.at = base + static_cast<size_t>(offset);
  return source.at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return source_of(handle).bytes.size(); }

int keep_message(TIFF*, void* user_data, const char*, const char* format, va_list arguments) {
  char text[256];
  std::vsnprintf(text, sizeof(text), format, arguments);
  static_cast<TiffSource*>(user_data)->message = text;
  return 1;  // do not call the process-wide handler, which prints
}

int ignore_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct CloseTiff {
  void operator()(TIFF* file) const { TIFFClose(file); }
};
using TiffFile = std::unique_ptr<TIFF, CloseTiff>;

TiffFile open(TiffSource& source, int64_t max_pixels, const std::string& where) {
  constexpr int64_t kMaxBytesPerPixel = 32;  // four channels of 64 bits
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_message, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, std::max<int64_t>(max_pixels, 1 << 16) * kMaxBytesPerPixel);
  TiffFile file(TIFFClientOpenExt(where.c_str(), "rm", &source, read_bytes, write_nothing, seek, close_nothing, size_of,
                                  nullptr, nullptr, options));
  TIFFOpenOptionsFree(options);
  if (file == nullptr) throw Error(where, "a complete TIFF image", source.message);
  return file;
}

struct Layout {
  uint32_t width = 0, height = 0, block_width = 0, block_height = 0;
  uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, photometric = 0, planar = PLANARCONFIG_CONTIG;
  uint16_t compression = COMPRESSION_NONE, orientation = 1, alpha = 0;
  bool is_tiled = false;
  bool is_planar() const { return planar == PLANARCONFIG_SEPARATE && samples > 1; }
};

Layout layout_of(TIFF* file) {
  Layout layout;
  TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &layout.width);
  TIFFGetField(file, TIFFTAG_IMAGELENGTH, &layout.height);
  TIFFGetFieldDefaulted(file, TIFFTAG_BITSPERSAMPLE, &layout.bits);
  TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLESPERPIXEL, &layout.samples);
  TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLEFORMAT, &layout.format);
  TIFFGetFieldDefaulted(file, TIFFTAG_PLANARCONFIG, &layout.planar);
  TIFFGetFieldDefaulted(file, TIFFTAG_COMPRESSION, &layout.compression);
  TIFFGetFieldDefaulted(file, TIFFTAG_ORIENTATION, &layout.orientation);
  TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &layout.photometric);
  uint16_t extras = 0, *kinds = nullptr;
  if (TIFFGetField(file, TIFFTAG_EXTRASAMPLES, &extras, &kinds) != 0 && extras > 0) layout.alpha = kinds[0];
  layout.is_tiled = TIFFIsTiled(file) != 0;
  layout.block_width = layout.width;
  layout.block_height = 1;
  if (layout.is_tiled) {
    TIFFGetField(file, TIFFTAG_TILEWIDTH, &layout.block_width);
    TIFFGetField(file, TIFFTAG_TILELENGTH, &layout.block_height);
  }
  return layout;
}

int64_t color_channels(const Layout& layout) {
  if (layout.photometric == PHOTOMETRIC_SEPARATED) return 4;
  return layout.photometric == PHOTOMETRIC_RGB || layout.photometric == PHOTOMETRIC_CIELAB ? 3 : 1;
}

// Whether the samples are read here; libtiff's own conversion to RGBA reads the other kinds.
bool is_plain(const Layout& layout) {
  const bool is_grey_or_index = layout.photometric == PHOTOMETRIC_MINISBLACK ||
                                layout.photometric == PHOTOMETRIC_MINISWHITE ||
                                layout.photometric == PHOTOMETRIC_PALETTE;
  const bool is_color = layout.photometric == PHOTOMETRIC_RGB || layout.photometric == PHOTOMETRIC_SEPARATED;
  const bool is_uint = layout.format == SAMPLEFORMAT_UINT || layout.format == SAMPLEFORMAT_VOID;
  if (layout.samples < color_channels(layout)) return false;
  if (layout.photometric == PHOTOMETRIC_CIELAB) return layout.bits == 8;
  if (layout.bits == 8 || (layout.bits == 16 && is_color)) return is_uint && (is_grey_or_index || is_color);
  if (!is_grey_or_index) return false;
  if (layout.bits < 8)
    return is_uint && layout.samples == 1 && (layout.bits == 1 || layout.bits == 2 || layout.bits == 4);
  return layout.photometric != PHOTOMETRIC_PALETTE && (layout.bits == 16 || layout.bits == 32) &&
         !(layout.bits == 16 && layout.format == SAMPLEFORMAT_IEEEFP);
}

template <class T>
T load(const uint8_t* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
uint8_t clamped(T value) {
  return value >= T{255} ? 255 : value > T{0} ? static_cast<uint8_t>(value) : 0;  // a NaN becomes 0
}

// Sample `index` of a row, in 8 bits.  libtiff has swapped the bytes to the machine's order.
uint8_t sample(const Layout& layout, const uint8_t* row, size_t index) {
  const size_t bits = layout.bits;
  if (bits < 8) {
    const unsigned value = row[index * bits / 8] >> (8 - bits - index * bits % 8) & ((1u << bits) - 1);
    return static_cast<uint8_t>(layout.photometric == PHOTOMETRIC_PALETTE ? value : value * 255 / ((1u << bits) - 1));
  }
  if (bits == 8) return row[index];
  if (bits == 16 && color_channels(layout) > 1) return static_cast<uint8_t>(load<uint16_t>(row, index) >> 8);
  if (layout.format == SAMPLEFORMAT_IEEEFP) return clamped(load<float>(row, index));
  const bool is_signed = layout.format == SAMPLEFORMAT_INT;
  if (bits == 16) return is_signed ? clamped(load<int16_t>(row, index)) : clamped(load<uint16_t>(row, index));
  return is_signed ? clamped(load<int32_t>(row, index)) : clamped(load<uint32_t>(row, index));
}

// The colour channels (and an alpha channel that they are multiplied with) of the image, in 8 bits.
class Samples {
 public:
  Samples(TIFF* file, const Layout& layout, const TiffSource& source, const std::string& where)
      : file_(file), layout_(layout), source_(source), where_(where) {
    const int64_t colors = color_channels(layout);
    keep_alpha_ =
        layout.photometric == PHOTOMETRIC_RGB && layout.samples > colors && layout.alpha == EXTRASAMPLE_ASSOCALPHA;
    image_ = make_image(layout.width, layout.height, colors + (keep_alpha_ ? 1 : 0));
  }

  Image read() {
    const tmsize_t size = layout_.is_tiled ? TIFFTileSize(file_) : TIFFScanlineSize(file_);
    if (size <= 0) fail();
    block_.resize(static_cast<size_t>(size));
    const auto planes = static_cast<uint16_t>(layout_.is_planar() ? image_.channels : 1);
    for (uint16_t plane = 0; plane < planes; ++plane) {
      for (uint32_t y = 0; y < layout_.height; y += layout_.block_height) {
        for (uint32_t x = 0; x < layout_.width; x += layout_.block_width) read_block(x, y, plane);
      }
    }
    return std::move(image_);
  }

 private:
  [[noreturn]] void fail() const { throw Error(where_, "a complete TIFF image", source_.message); }

  void read_block(uint32_t x, uint32_t y, uint16_t plane) {
    if (layout_.is_tiled ? TIFFReadTile(file_, block_.data(), x, y, 0, plane) < 0
                         : TIFFReadScanline(file_, block_.data(), y, plane) < 0) {
      fail();
    }
    const size_t row_bytes = block_.size() / layout_.block_height;
    const size_t samples = layout_.is_planar() ? 1 : layout_.samples;
    const size_t needed = (size_t{layout_.block_width} * samples * layout_.bits + 7) / 8;
    if (row_bytes < needed) fail();
    const uint32_t rows = std::min(layout_.block_height, layout_.height - y);
    for (uint32_t r = 0; r < rows; ++r) copy_row(x, y + r, plane, block_.data() + r * row_bytes, samples);
  }

  void copy_row(uint32_t x, uint32_t y, uint16_t plane, const uint8_t* row, size_t samples) {
    const uint32_t columns = std::min(layout_.block_width, layout_.width - x);
    const auto channels = static_cast<size_t>(image_.channels);
    uint8_t* out = image_.row(y) + x * channels;
    for (uint32_t column = 0; column < columns; ++column, out += channels) {
      if (layout_.is_planar()) {
        out[plane] = sample(layout_, row, column);
      } else {
        for (size_t c = 0; c < channels; ++c) out[c] = sample(layout_, row, column * samples + c);
      }
    }
  }

  TIFF* file_;
  const Layout& layout_;
  const TiffSource& source_;
  const std::string& where_;
  bool keep_alpha_ = false;
  Image image_;
  std::vector<uint8_t> block_;
};

Palette palette_of(TIFF* file, const Layout& layout, const std::string& where) {
  uint16_t* colors[3] = {};
  if (TIFFGetField(file, TIFFTAG_COLORMAP, &colors[0], &colors[1], &colors[2]) == 0) {
    throw Error(where, "a complete TIFF image", "one without its palette");
  }
  Palette palette{};
  for (size_t i = 0; i < size_t{1} << layout.bits; ++i) {
    for (size_t c = 0; c < 3; ++c) palette[i][c] = static_cast<uint8_t>(colors[c][i] >> 8);
  }
  return palette;
}

Image without_alpha(const Image& rgba) {
  Image rgb = make_image(rgba.width, rgba.height, 3);
  for (size_t i = 0; i < rgb.pixels.size() / 3; ++i) {
    const int alpha = rgba.pixels[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const int value = rgba.pixels[4 * i + c];
      rgb.pixels[3 * i + c] = static_cast<uint8_t>(alpha == 0 ? value : std::min(255, 255 * value / alpha));
    }
  }
  return rgb;
}

Image colors_of(TIFF* file, const Layout& layout, Image samples, const DecodeOptions& options,
                const std::string& where) {
  if (layout.photometric == PHOTOMETRIC_PALETTE) {
    return from_palette(samples.pixels, samples.width, samples.height, palette_of(file, layout, where), options.mode);
  }
  if (layout.photometric == PHOTOMETRIC_SEPARATED) {
    Image rgb = make_image(samples.width, samples.height, 3);
    for (uint8_t& value : samples.pixels) value = static_cast<uint8_t>(255 - value);
    inverted_cmyk_to_rgb(samples.pixels.data(), samples.width * samples.height, rgb.pixels.data());
    return to_mode(std::move(rgb), options.mode);
  }
  if (layout.photometric == PHOTOMETRIC_CIELAB) {
    cielab_to_rgb(samples.pixels.data(), samples.width * samples.height, samples.pixels.data());
  }
  if (layout.photometric == PHOTOMETRIC_MINISWHITE && layout.bits <= 8) {
    for (uint8_t& value : samples.pixels) value = static_cast<uint8_t>(255 - value);
  }
  return to_mode(samples.channels == 4 ? without_alpha(samples) : std::move(samples), options.mode);
}

// libtiff's conversion, for YCbCr, LogLuv and others.
Image converted(TIFF* file, const Layout& layout, const TiffSource& source, ColorMode mode, const std::string& where) {
  std::vector<uint32_t> raster(size_t{layout.width} * layout.height);
  if (TIFFReadRGBAImageOriented(file, layout.width, layout.height, raster.data(), ORIENTATION_TOPLEFT, 1) == 0) {
    throw Error(where, "a complete TIFF image", source.message);
  }
  Image image = make_image(layout.width, layout.height, 3);
  for (size_t i = 0; i < raster.size(); ++i) {
    image.pixels[3 * i] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    image.pixels[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    image.pixels[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  return to_mode(std::move(image), mode);
}

}  // namespace

Image decode_tiff(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  TiffSource source{bytes};
  const TiffFile file = open(source, options.max_pixels, where);
  Layout layout = layout_of(file.get());
  check_size(layout.width, layout.height, options.max_pixels, where);
  check_size(layout.block_width, layout.block_height, options.max_pixels, where);
  constexpr int64_t kRasterBytes = 4;  // libtiff's conversion, or a strip that is the whole image
  reserve_pixels(where, layout.width, layout.height, kRasterBytes);
  if (layout.photometric == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG) {
    TIFFSetField(file.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    layout.photometric = PHOTOMETRIC_RGB;
  }
  if (!is_plain(layout)) return converted(file.get(), layout, source, options.mode, where);
  Image samples = Samples(file.get(), layout, source, where).read();
  if (layout.bits > 8 && color_channels(layout) == 1) check_clamped_grey(samples, where);
  Image image = colors_of(file.get(), layout, std::move(samples), options, where);
  return exif_transpose(std::move(image), layout.orientation);
}

}  // namespace vitrail::image
