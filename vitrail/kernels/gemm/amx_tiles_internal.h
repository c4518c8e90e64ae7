// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tile registers of Intel AMX (Software Developer's Manual, volume 1, chapter 18), behind a thin layer with a twin
// in plain C++, so that the microkernels on it are tested on every machine.
//
// Both classes have the same static functions.  A tile has up to 16 rows of up to 64 bytes.  Tiles are numbered 0 to 7.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "hwy/base.h"
#include "vitrail/base/dtype.h"

namespace vitrail::kernels {

constexpr int64_t kTileRows = 16, kTileRowBytes = 64, kTileGroups = 16;  // groups: of 32 bits in a row
constexpr size_t kNumTiles = 8;

// The operand of ldtilecfg: the shape of each tile.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(size_t tile, int64_t tile_rows) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = kTileRowBytes;
  }
};
static_assert(sizeof(TileConfig) == 64);

#if defined(__x86_64__)
// Needs Feature::amx.
struct AmxTiles {
  HWY_INLINE static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
  HWY_INLINE static void release() { asm volatile("tilerelease"); }
  template <size_t tile>
  HWY_INLINE static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <size_t tile>
  HWY_INLINE static void load(const void* from, int64_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(tile) : "memory");
  }
  template <size_t tile>
  HWY_INLINE static void store(void* to, int64_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "i"(tile) : "memory");
  }
  // c [rows of a][16] += Σ over the four values of each group, a unsigned and b signed.
  template <size_t c, size_t a, size_t b>
  HWY_INLINE static void multiply_add_int8() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
  // Likewise with groups of two bf16 and sums in fp32.
  template <size_t c, size_t a, size_t b>
  HWY_INLINE static void multiply_add_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};
#endif

// The same in plain C++, on registers of the calling thread.
struct EmulatedTiles {
  static void configure(const TileConfig& config) {
    registers().config = config;
    for (auto& tile : registers().tiles) tile = {};
  }
  static void release() { configure({}); }
  template <size_t tile>
  static void zero() {
    registers().tiles[tile] = {};
  }
  template <size_t tile>
  static void load(const void* from, int64_t stride_bytes) {
    Tile& to = registers().tiles[tile] = {};
    for (int64_t r = 0; r < rows_of(tile); ++r) {
      std::memcpy(to[r].data(), static_cast<const std::byte*>(from) + r * stride_bytes, kTileRowBytes);
    }
  }
  template <size_t tile>
  static void store(void* to, int64_t stride_bytes) {
    for (int64_t r = 0; r < rows_of(tile); ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * stride_bytes, registers().tiles[tile][r].data(), kTileRowBytes);
    }
  }
  template <size_t c, size_t a, size_t b>
  static void multiply_add_int8() {
    multiply_add<c, a, b>([](int32_t sum, int32_t x_group, int32_t w_group) {
      const auto x = std::bit_cast<std::array<uint8_t, 4>>(x_group);
      const auto w = std::bit_cast<std::array<int8_t, 4>>(w_group);
      for (size_t i = 0; i < 4; ++i) sum += x[i] * w[i];
      return sum;
    });
  }
  template <size_t c, size_t a, size_t b>
  static void multiply_add_bf16() {
    multiply_add<c, a, b>([](int32_t bits, int32_t x_group, int32_t w_group) {
      const auto x = std::bit_cast<std::array<BFloat16, 2>>(x_group),
                 w = std::bit_cast<std::array<BFloat16, 2>>(w_group);
      auto sum = std::bit_cast<float>(bits);
      for (size_t i = 0; i < 2; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(w[i]);
      return std::bit_cast<int32_t>(sum);
    });
  }

 private:
  // Updates each element of c by each group of its row of a and its column of b.
  template <size_t c, size_t a, size_t b, class Add>
  static void multiply_add(const Add& add) {
    auto& tiles = registers().tiles;
    for (int64_t row = 0; row < rows_of(c); ++row) {
      for (int64_t column = 0; column < kTileGroups; ++column) {
        int32_t& sum = tiles[c][row][column];
        for (int64_t group = 0; group < rows_of(b); ++group)
          sum = add(sum, tiles[a][row][group], tiles[b][group][column]);
      }
    }
  }

  using Tile = std::array<std::array<int32_t, kTileGroups>, kTileRows>;
  struct Registers {
    TileConfig config;
    std::array<Tile, kNumTiles> tiles;
  };
  static Registers& registers() {
    thread_local Registers registers;
    return registers;
  }
  static int64_t rows_of(size_t tile) { return registers().config.rows[tile]; }
};

}  // namespace vitrail::kernels
