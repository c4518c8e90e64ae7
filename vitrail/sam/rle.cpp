// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/rle.h"

#include <algorithm>
#include <cstring>

#include "vitrail/base/error.h"

namespace vitrail::sam {
namespace {

constexpr uint64_t kMaxPixels = UINT32_MAX;  // so that a run fits its type

void check_size(const std::string& where, int64_t width, int64_t height) {
  const bool fits = width >= 0 && height >= 0 && (height == 0 || static_cast<uint64_t>(width) <= kMaxPixels / height);
  if (!fits) throw Error(where, "a mask of less than 2^32 pixels", str(width, "×", height));
}

void check_sum(const std::string& where, const Rle& rle) {
  uint64_t sum = 0;
  for (const uint32_t count : rle.counts) sum += count;
  const auto pixels = static_cast<uint64_t>(rle.width * rle.height);
  if (sum != pixels) throw Error(where, str("runs of ", pixels, " pixels"), str(sum));
}

// Calls found(x) for each column in which the two rows differ.
template <class Found>
void for_differences(const uint8_t* row, const uint8_t* above, int64_t width, Found found) {
  int64_t x = 0;
  for (; x + 8 <= width; x += 8) {
    if (std::memcmp(row + x, above + x, 8) == 0) continue;
    for (int64_t i = x; i < x + 8; ++i) {
      if (row[i] != above[i]) found(i);
    }
  }
  for (; x < width; ++x) {
    if (row[x] != above[x]) found(x);
  }
}

}  // namespace

// Rows are compared with the row above, which is quicker than walking down the columns.  The pixel before the first one
// of a column is the last one of the column before it.
Rle encode(const BinaryMask& mask) {
  check_size("encode", mask.width, mask.height);
  Rle rle{mask.width, mask.height, {}};
  if (mask.pixels.empty()) return rle;
  std::vector<uint8_t> before(static_cast<size_t>(mask.width));  // [width], of the first row
  std::copy_n(mask.row(mask.height - 1), mask.width - 1, before.data() + 1);
  std::vector<uint32_t> columns, starts(static_cast<size_t>(mask.width) + 1);
  std::vector<uint32_t> rows;
  for (int64_t y = 0; y < mask.height; ++y) {
    for_differences(mask.row(y), y == 0 ? before.data() : mask.row(y - 1), mask.width, [&](int64_t x) {
      columns.push_back(static_cast<uint32_t>(x));
      rows.push_back(static_cast<uint32_t>(y));
      ++starts[static_cast<size_t>(x) + 1];
    });
  }
  for (size_t x = 1; x < starts.size(); ++x) starts[x] += starts[x - 1];
  std::vector<uint32_t> changes(columns.size());  // positions in column-major order
  for (size_t i = 0; i < columns.size(); ++i) {
    changes[starts[columns[i]]++] = columns[i] * static_cast<uint32_t>(mask.height) + rows[i];
  }
  uint32_t last = 0;
  rle.counts.reserve(changes.size() + 1);
  for (const uint32_t at : changes) {
    rle.counts.push_back(at - last);
    last = at;
  }
  rle.counts.push_back(static_cast<uint32_t>(mask.width * mask.height) - last);
  return rle;
}

BinaryMask decode(const Rle& rle) {
  check_size("decode", rle.width, rle.height);
  check_sum("decode", rle);
  BinaryMask mask = make_mask(rle.width, rle.height);
  int64_t at = 0;
  uint8_t value = 0;
  for (const uint32_t count : rle.counts) {
    for (const int64_t end = at + count; value == 1 && at < end; ++at) mask.row(at % rle.height)[at / rle.height] = 1;
    at += value == 0 ? count : 0;
    value ^= 1;
  }
  return mask;
}

int64_t area(const Rle& rle) {
  int64_t sum = 0;
  for (size_t i = 1; i < rle.counts.size(); i += 2) sum += rle.counts[i];
  return sum;
}

std::string to_coco(const Rle& rle) {
  std::string text;
  for (size_t i = 0; i < rle.counts.size(); ++i) {
    int64_t value = rle.counts[i];
    if (i > 2) value -= rle.counts[i - 2];
    for (bool more = true; more;) {
      int64_t bits = value & 31;
      value >>= 5;
      more = (bits & 16) != 0 ? value != -1 : value != 0;  // the fifth bit is the sign of the last character
      if (more) bits |= 32;
      text += static_cast<char>(bits + 48);
    }
  }
  return text;
}

Rle from_coco(std::string_view counts, int64_t width, int64_t height, const std::string& where) {
  check_size(where, width, height);
  Rle rle{width, height, {}};
  while (!counts.empty()) {
    int64_t value = 0;
    bool more = true;
    for (int shift = 0; more; shift += 5) {
      if (counts.empty()) throw Error(where, "a run of COCO's encoding", "the end of the text");
      const int bits = static_cast<unsigned char>(counts.front()) - 48;
      if (bits < 0 || bits > 63 || shift > 35) throw Error(where, "a run of COCO's encoding", str("byte ", bits + 48));
      counts.remove_prefix(1);
      value |= static_cast<int64_t>(bits & 31) << shift;
      more = (bits & 32) != 0;
      if (!more && (bits & 16) != 0) value -= int64_t{1} << (shift + 5);
    }
    if (rle.counts.size() > 2) value += rle.counts[rle.counts.size() - 2];
    if (value < 0 || value > static_cast<int64_t>(kMaxPixels)) throw Error(where, "a run of pixels", str(value));
    rle.counts.push_back(static_cast<uint32_t>(value));
  }
  check_sum(where, rle);
  return rle;
}

}  // namespace vitrail::sam
