// SPDX-License-Identifier: Apache-2.0
// Decodes the Netpbm formats P1 to P6 (PBM, PGM, PPM; text and binary) as Pillow does.
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::image {
namespace {

class PnmReader {
 public:
  PnmReader(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  // The decimal number after white space and comments.
  int64_t number() {
    skip_space();
    int64_t value = 0;
    const size_t begin = at_;
    while (at_ < bytes_.size() && is_digit(peek())) {
      value = value * 10 + (peek() - '0');
      ++at_;
      if (value > INT32_MAX) fail("a larger number");
    }
    if (at_ == begin) fail(at_ == bytes_.size() ? "the end of the file" : "no number");
    return value;
  }

  // A pixel of P1: digits need no space between them.
  bool bit() {
    skip_space();
    if (at_ == bytes_.size()) fail("the end of the file");
    const char c = peek();
    if (c != '0' && c != '1') fail("no bit");
    ++at_;
    return c == '1';
  }

  void skip(size_t count) { at_ = std::min(bytes_.size(), at_ + count); }

  // The next `count` bytes.
  Bytes take(size_t count) {
    if (bytes_.size() - at_ < count) fail("the end of the file");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

  [[noreturn]] void fail(const std::string& got) const { throw Error(where_, "a complete PBM, PGM or PPM image", got); }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  char peek() const { return static_cast<char>(bytes_[at_]); }

  void skip_space() {
    for (; at_ < bytes_.size(); ++at_) {
      if (peek() == '#') {
        while (at_ < bytes_.size() && peek() != '\n' && peek() != '\r') ++at_;
        if (at_ == bytes_.size()) return;
      } else if (!is_space(peek())) {
        return;
      }
    }
  }

  Bytes bytes_;
  const std::string& where_;
  size_t at_ = 2;  // after the magic number
};

struct PnmHeader {
  int kind;  // the digit of P1 to P6
  int64_t width, height, max;
  bool is_text() const { return kind <= 3; }
  bool is_bitmap() const { return kind == 1 || kind == 4; }
  int64_t channels() const { return kind == 3 || kind == 6 ? 3 : 1; }
};

PnmHeader read_header(PnmReader& reader, int kind) {
  PnmHeader header{kind, reader.number(), reader.number(), 1};
  if (!header.is_bitmap()) header.max = reader.number();
  if (header.max < 1 || header.max > 65535) reader.fail(str("a maximum of ", header.max));
  reader.skip(1);  // the one space before binary data
  return header;
}

// Text is checked for its least size, so that a header alone does not allocate an image.
void check_bytes(const PnmHeader& header, Bytes bytes, const PnmReader& reader) {
  const int64_t samples = header.width * header.height * header.channels();
  const int64_t needed = header.kind == 4 ? samples / 8 : samples;
  if (static_cast<int64_t>(bytes.size()) < needed) reader.fail("the end of the file");
}

// 0 is white.
Image read_bitmap(PnmReader& reader, const PnmHeader& header) {
  Image image = make_image(header.width, header.height, 1);
  for (int64_t y = 0; y < header.height; ++y) {
    const Bytes row = header.is_text() ? Bytes() : reader.take(static_cast<size_t>((header.width + 7) / 8));
    for (int64_t x = 0; x < header.width; ++x) {
      const bool black = header.is_text()
                             ? reader.bit()
                             : (std::to_integer<int>(row[static_cast<size_t>(x / 8)]) >> (7 - x % 8) & 1) != 0;
      image.row(y)[x] = black ? 0 : 255;
    }
  }
  return image;
}

// A sample on the scale 0 … 255.  Grey beyond 8 bits is scaled to 16 bits and clamped, as Pillow does.
uint8_t scaled(int64_t value, const PnmHeader& header) {
  const int64_t out_max = header.channels() == 1 && header.max > 255 ? 65535 : 255;
  if (header.max == out_max) return static_cast<uint8_t>(std::min<int64_t>(value, 255));
  const double fraction = static_cast<double>(value) / static_cast<double>(header.max);
  return static_cast<uint8_t>(std::min(255.0, std::nearbyint(fraction * static_cast<double>(out_max))));
}

Image read_samples(PnmReader& reader, const PnmHeader& header) {
  Image image = make_image(header.width, header.height, header.channels());
  const size_t size = header.max > 255 ? 2 : 1;
  for (int64_t y = 0; y < header.height; ++y) {
    const Bytes row = header.is_text() ? Bytes() : reader.take(size * static_cast<size_t>(image.row_bytes()));
    for (int64_t i = 0; i < image.row_bytes(); ++i) {
      int64_t value = 0;
      if (header.is_text()) {
        value = reader.number();
        if (value > header.max) reader.fail(str("a sample of ", value, " above ", header.max));
      } else {
        for (size_t b = 0; b < size; ++b) {
          value = value << 8 | std::to_integer<int64_t>(row[size * static_cast<size_t>(i) + b]);
        }
      }
      image.row(y)[i] = scaled(value, header);
    }
  }
  return image;
}

}  // namespace

Image decode_pnm(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  PnmReader reader(bytes, where);
  const PnmHeader header = read_header(reader, std::to_integer<int>(bytes[1]) - '0');
  check_size(header.width, header.height, options.max_pixels, where);
  reserve_pixels(where, header.width, header.height);
  check_bytes(header, bytes, reader);
  Image image = header.is_bitmap() ? read_bitmap(reader, header) : read_samples(reader, header);
  if (header.channels() == 1 && header.max > 255) check_clamped_grey(image, where);
  return to_mode(std::move(image), options.mode);
}

}  // namespace vitrail::image
