// SPDX-License-Identifier: Apache-2.0
// The configuration of AMX's tile registers, and the twin of the tiles in C++.
#include "vitrail/kernels/gemm/amx_tiles_internal.h"

#include <gtest/gtest.h>

#include <vector>

#include "vitrail/kernels/gemm/amx_microkernel-inl.h"

namespace vitrail::kernels {
namespace {

std::array<uint8_t, 64> bytes_of(const TileConfig& config) { return std::bit_cast<std::array<uint8_t, 64>>(config); }

// Intel's manual: palette at byte 0, start row at 1, bytes per row from 16 on (16 bits each), rows from 48 on.
TEST(TileConfig, HasTheLayoutOfTheInstruction) {
  TileConfig config;
  config.set(3, 7);
  config.set(7, 16);
  std::array<uint8_t, 64> want{};
  want[0] = 1;
  want[16 + 2 * 3] = want[16 + 2 * 7] = 64;
  want[48 + 3] = 7;
  want[48 + 7] = 16;
  EXPECT_EQ(bytes_of(config), want);
}

TEST(TileConfig, OfABlockHasItsRowsInTheTilesOfAccumulatorsAndOfX) {
  const auto rows_of = [](int64_t rows) {
    const std::array<uint8_t, 64> bytes = bytes_of(AmxBlock<Int8Tiles<EmulatedTiles>>::config(rows));
    return std::vector<int>(bytes.begin() + 48, bytes.begin() + 56);
  };
  EXPECT_EQ(rows_of(5), (std::vector<int>{5, 5, 0, 0, 5, 0, 16, 16}));
  EXPECT_EQ(rows_of(16), (std::vector<int>{16, 16, 0, 0, 16, 0, 16, 16}));
  EXPECT_EQ(rows_of(17), (std::vector<int>{16, 16, 1, 1, 16, 1, 16, 16}));
  EXPECT_EQ(rows_of(32), (std::vector<int>{16, 16, 16, 16, 16, 16, 16, 16}));
}

TEST(EmulatedTiles, LoadAndStoreTheRowsOfTheirConfiguration) {
  TileConfig config;
  config.set(2, 3);
  EmulatedTiles::configure(config);
  std::vector<int32_t> from(3 * 20), to(3 * 18, -1);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int32_t>(i);
  EmulatedTiles::load<2>(from.data(), 20 * 4);
  EmulatedTiles::store<2>(to.data(), 18 * 4);
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 18; ++c) EXPECT_EQ(to[r * 18 + c], c < 16 ? 20 * r + c : -1) << r << " " << c;
  }
  EmulatedTiles::zero<2>();
  EmulatedTiles::store<2>(to.data(), 18 * 4);
  EXPECT_EQ(to[18], 0);
  EmulatedTiles::release();
}

// c [2, 16] += a [2, 3 groups] · b [3 groups, 16], where a group has four values: the first factor is unsigned.
TEST(EmulatedTiles, MultiplyUnsignedBytesBySignedOnes) {
  TileConfig config;
  config.set(0, 2);
  config.set(1, 2);
  config.set(2, 3);
  EmulatedTiles::configure(config);
  std::vector<uint8_t> a(2 * 64);
  std::vector<int8_t> b(3 * 64);
  std::vector<int32_t> c(2 * 16, 1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i * 37 + 100);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int8_t>(i * 29 - 70);
  EmulatedTiles::load<0>(c.data(), 64);
  EmulatedTiles::load<1>(a.data(), 64);
  EmulatedTiles::load<2>(b.data(), 64);
  EmulatedTiles::multiply_add_int8<0, 1, 2>();
  EmulatedTiles::store<0>(c.data(), 64);
  EmulatedTiles::release();
  for (int r = 0; r < 2; ++r) {
    for (int column = 0; column < 16; ++column) {
      int32_t want = 1000;
      for (int k = 0; k < 12; ++k) want += a[r * 64 + k] * b[k / 4 * 64 + column * 4 + k % 4];
      EXPECT_EQ(c[r * 16 + column], want) << r << " " << column;
    }
  }
}

TEST(EmulatedTiles, MultiplyPairsOfBf16AndAddInFp32) {
  TileConfig config;
  config.set(3, 1);
  config.set(4, 1);
  config.set(6, 2);
  EmulatedTiles::configure(config);
  std::vector<BFloat16> a(32), b(2 * 32);
  std::vector<float> c(16, 0.5f);
  for (size_t i = 0; i < a.size(); ++i) a[i] = BFloat16(static_cast<float>(i) - 3.5f);
  for (size_t i = 0; i < b.size(); ++i) b[i] = BFloat16(static_cast<float>(i % 7) - 2);
  EmulatedTiles::load<3>(c.data(), 64);
  EmulatedTiles::load<4>(a.data(), 64);
  EmulatedTiles::load<6>(b.data(), 64);
  EmulatedTiles::multiply_add_bf16<3, 4, 6>();
  EmulatedTiles::store<3>(c.data(), 64);
  EmulatedTiles::release();
  for (size_t column = 0; column < 16; ++column) {
    float want = 0.5f;
    for (size_t k = 0; k < 4; ++k) {
      want += static_cast<float>(a[k]) * static_cast<float>(b[k / 2 * 32 + column * 2 + k % 2]);
    }
    EXPECT_EQ(c[column], want) << column;
  }
}

}  // namespace
}  // namespace vitrail::kernels
