// SPDX-License-Identifier: Apache-2.0
// Decodes BMP files of Windows and OS/2 as Pillow does: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits with masks,
// run lengths of 4 and 8 bits.
#include <algorithm>
#include <array>
#include <bit>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::image {
namespace {

enum Compression : uint32_t { kRaw = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3 };
constexpr size_t kFileHeader = 14;

struct BmpHeader {
  int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;
  uint32_t compression = kRaw, colors = 0;
  size_t palette = 0, palette_entry = 4, data = 0;  // byte positions, and bytes per palette entry
  std::array<uint32_t, 3> masks{};                  // red, green, blue
};

// A little-endian integer of `size` bytes.
uint32_t number(Bytes bytes, size_t at, size_t size, const std::string& where) {
  if (at + size > bytes.size()) throw Error(where, "a complete BMP image", "the end of the file");
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

void read_masks(Bytes bytes, size_t header_size, BmpHeader& header, const std::string& where) {
  if (header.bits == 16) header.masks = {0x7c00, 0x3e0, 0x1f};
  if (header.bits > 16) header.masks = {0xff0000, 0xff00, 0xff};
  if (header.compression != kBitFields) return;
  std::array<uint32_t, 3> masks{};
  for (size_t c = 0; c < 3; ++c) masks[c] = number(bytes, kFileHeader + 40 + 4 * c, 4, where);
  if (header_size == 40) header.palette += 12;  // the masks follow the header instead of being in it
  if (masks != std::array<uint32_t, 3>{}) header.masks = masks;
}

BmpHeader read_header(Bytes bytes, const std::string& where) {
  BmpHeader header;
  header.data = number(bytes, 10, 4, where);
  const size_t size = number(bytes, kFileHeader, 4, where);
  constexpr std::array<size_t, 7> kSizes{12, 40, 52, 56, 64, 108, 124};
  if (std::find(kSizes.begin(), kSizes.end(), size) == kSizes.end()) {
    throw Error(where, "a BMP image", str("one with an unknown header of ", size, " bytes"));
  }
  header.palette = kFileHeader + size;
  if (size == 12) {
    header.width = number(bytes, 18, 2, where);
    header.height = number(bytes, 20, 2, where);
    header.bits = static_cast<int>(number(bytes, 24, 2, where));
    header.palette_entry = 3;
  } else {
    const auto height = static_cast<int32_t>(number(bytes, 22, 4, where));
    header.width = number(bytes, 18, 4, where);
    header.top_down = height < 0;
    header.height = std::abs(int64_t{height});
    header.bits = static_cast<int>(number(bytes, 28, 2, where));
    header.compression = number(bytes, 30, 4, where);
    header.colors = number(bytes, 46, 4, where);
  }
  read_masks(bytes, size, header, where);
  return header;
}

void check_kind(const BmpHeader& header, const std::string& where) {
  const int bits = header.bits;
  const bool is_indexed = bits == 1 || bits == 4 || bits == 8, is_direct = bits == 16 || bits == 24 || bits == 32;
  bool is_known = header.compression == kRaw ? is_indexed || is_direct : false;
  if (header.compression == kRle8) is_known = bits == 8;
  if (header.compression == kRle4) is_known = bits == 4;
  if (header.compression == kBitFields) is_known = is_direct;
  if (!is_known) {
    throw Error(where, "a BMP image of 1, 4, 8, 16, 24 or 32 bits",
                str(bits, " bits with compression ", header.compression));
  }
}

// Moves `header.data` behind the palette if it is wrong, as Pillow does.  A palette that begins a grey ramp is one.
Palette read_palette(Bytes bytes, BmpHeader& header, const std::string& where) {
  const uint32_t count = header.colors > 0 ? header.colors : 1u << header.bits;
  if (count > 65536) throw Error(where, "a BMP palette of at most 65536 colours", str(count));
  if (header.data == header.palette) header.data += header.palette_entry * count;
  Palette palette{}, ramp{};
  bool is_ramp = header.bits == 8;
  for (size_t i = 0; i < 256; ++i) {
    ramp[i].fill(static_cast<uint8_t>(i));
    if (i >= count) continue;
    for (size_t c = 0; c < 3; ++c) {
      palette[i][2 - c] = static_cast<uint8_t>(number(bytes, header.palette + header.palette_entry * i + c, 1, where));
    }
    is_ramp = is_ramp && palette[i] == ramp[i];
  }
  return is_ramp ? ramp : palette;
}

// The value of a mask's bits on the scale 0 … 255.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const uint64_t max = mask >> std::countr_zero(mask);
  return static_cast<uint8_t>(((pixel & mask) >> std::countr_zero(mask)) * uint64_t{255} / max);
}

// Calls `row(y, bytes)` for each row of uncompressed data; rows are padded to four bytes.
template <class Row>
void for_each_row(Bytes bytes, const BmpHeader& header, const std::string& where, Row row) {
  const size_t stride = (static_cast<size_t>(header.width) * static_cast<size_t>(header.bits) + 31) / 32 * 4;
  const size_t available = bytes.size() - std::min(bytes.size(), header.data);
  if (available / stride < static_cast<size_t>(header.height)) {
    const size_t last = (static_cast<size_t>(header.width) * static_cast<size_t>(header.bits) + 7) / 8;
    const size_t needed = (static_cast<size_t>(header.height) - 1) * stride + last;  // the last row's padding may lack
    if (available < needed) throw Error(where, "a complete BMP image", "the end of the file");
  }
  for (int64_t i = 0; i < header.height; ++i) {
    row(header.top_down ? i : header.height - 1 - i, bytes.data() + header.data + static_cast<size_t>(i) * stride);
  }
}

Image read_colors(Bytes bytes, const BmpHeader& header, const std::string& where) {
  Image image = make_image(header.width, header.height, 3);
  const auto size = static_cast<size_t>(header.bits / 8);
  for_each_row(bytes, header, where, [&](int64_t y, const std::byte* row) {
    uint8_t* out = image.row(y);
    for (int64_t x = 0; x < header.width; ++x, row += size) {
      uint32_t pixel = 0;
      for (size_t i = size; i-- > 0;) pixel = pixel << 8 | std::to_integer<uint32_t>(row[i]);
      for (const uint32_t mask : header.masks) *out++ = channel(pixel, mask);
    }
  });
  return image;
}

Image read_indices(Bytes bytes, const BmpHeader& header, const std::string& where) {
  Image indices = make_image(header.width, header.height, 1);
  const auto bits = static_cast<size_t>(header.bits);
  const uint32_t mask = (1u << bits) - 1;
  for_each_row(bytes, header, where, [&](int64_t y, const std::byte* row) {
    for (size_t x = 0; x < static_cast<size_t>(header.width); ++x) {
      const size_t shift = 8 - bits - x * bits % 8;
      indices.row(y)[x] = static_cast<uint8_t>(std::to_integer<uint32_t>(row[x * bits / 8]) >> shift & mask);
    }
  });
  return indices;
}

// Pairs of bytes: a run (count, colour), or 0 and a command: 0 end of line, 1 end of image, 2 a move by (right, up), n
// a literal of n pixels padded to two bytes.  In 4 bits, a colour is two that alternate.  Pixels that are left out are
// 0.
class RunLengths {
 public:
  RunLengths(Bytes bytes, const BmpHeader& header, const std::string& where)
      : left_(bytes.subspan(std::min(bytes.size(), header.data))),
        is_4_bits_(header.bits == 4),
        width_(header.width),
        where_(where),
        indices_(make_image(header.width, header.height, 1)) {}

  // Rows in the order of the file.
  Image read() {
    const auto end = static_cast<int64_t>(indices_.pixels.size());
    while (at_ < end) {
      const uint8_t count = next();
      const uint8_t value = next();
      if (count > 0) {
        const int64_t room = std::max<int64_t>(width_ - x_, 0);  // what exceeds the row is left out
        for (int64_t i = 0; i < std::min<int64_t>(count, room); ++i) put(is_4_bits_ ? nibble(value, i) : value);
      } else if (value == 0) {
        move_to(round_up(at_, width_));
      } else if (value == 1) {
        break;
      } else if (value == 2) {
        const int64_t right = next();
        move_to(at_ + right + next() * width_);
      } else {
        literal(value);
      }
    }
    return std::move(indices_);
  }

 private:
  static uint8_t nibble(uint8_t value, int64_t i) { return i % 2 == 0 ? value >> 4 : value & 15; }

  uint8_t next() {
    if (left_.empty()) throw Error(where_, "a complete BMP image", "the end of the file");
    const auto value = std::to_integer<uint8_t>(left_.front());
    left_ = left_.subspan(1);
    return value;
  }

  void put(uint8_t index) {
    if (at_ < static_cast<int64_t>(indices_.pixels.size())) indices_.pixels[static_cast<size_t>(at_)] = index;
    ++at_, ++x_;
  }

  void move_to(int64_t position) {
    at_ = position;
    x_ = at_ % width_;
  }

  void literal(int count) {
    const int bytes = is_4_bits_ ? (count + 1) / 2 : count;
    for (int i = 0; i < bytes; ++i) {
      const uint8_t value = next();
      put(is_4_bits_ ? value >> 4 : value);
      if (is_4_bits_ && 2 * i + 1 < count) put(value & 15);
    }
    if (bytes % 2 != 0 && !left_.empty()) next();
  }

  Bytes left_;
  bool is_4_bits_;
  int64_t width_;
  const std::string& where_;
  Image indices_;
  int64_t at_ = 0, x_ = 0;  // the next pixel, and how many of its row are given
};

Image flipped(const Image& image) {
  Image result = make_image(image.width, image.height, image.channels);
  for (int64_t y = 0; y < image.height; ++y) {
    std::copy_n(image.row(y), image.row_bytes(), result.row(image.height - 1 - y));
  }
  return result;
}

}  // namespace

Image decode_bmp(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  BmpHeader header = read_header(bytes, where);
  check_kind(header, where);
  check_size(header.width, header.height, options.max_pixels, where);
  reserve_pixels(where, header.width, header.height);
  if (header.bits > 8) return to_mode(read_colors(bytes, header, where), options.mode);
  const Palette palette = read_palette(bytes, header, where);
  Image indices;
  if (header.compression == kRaw) {
    indices = read_indices(bytes, header, where);
  } else {
    indices = RunLengths(bytes, header, where).read();
    if (!header.top_down) indices = flipped(indices);
  }
  return from_palette(indices.pixels, header.width, header.height, palette, options.mode);
}

}  // namespace vitrail::image
