// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/crc32c_internal.h"

#include <array>
#include <bit>
#include <cstring>

namespace vitrail {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, bit-reversed

// Slicing-by-8 (Kounavis & Berry 2005): row k is the CRC of a byte followed by k zero bytes, so that one step consumes
// eight bytes.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t row = 1; row < 8; ++row) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[row - 1][byte];
      tables[row][byte] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(const void* data, size_t size, uint32_t previous) {
  static_assert(std::endian::native == std::endian::little);
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint32_t crc = ~previous;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t block;
    std::memcpy(&block, bytes, 8);
    block ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(block >> (8 * i)) & 0xFF];
  }
  for (; size > 0; --size, ++bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFF];
  return ~crc;
}

}  // namespace vitrail
