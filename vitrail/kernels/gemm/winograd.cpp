// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/winograd_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/winograd.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/epilogue-inl.h"

#ifndef VITRAIL_KERNELS_WINOGRAD_ONCE
#define VITRAIL_KERNELS_WINOGRAD_ONCE
namespace vitrail::kernels {

// 4×4 cells of a map.  The result has the inner 2×2.
struct WinogradTile {
  static constexpr int64_t kSide = 4, kElements = kSide * kSide;
  const float* cells[kElements];  // [channels] each; zeros outside the map
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

// Bᵀ d of four values; V: vectors.
template <class V>
HWY_INLINE void transform_input(V& d0, V& d1, V& d2, V& d3) {
  const V sum = hn::Add(d1, d2), difference = hn::Sub(d2, d1);
  d0 = hn::Sub(d0, d2);
  d3 = hn::Sub(d1, d3);
  d1 = sum;
  d2 = difference;
}

// v = Bᵀ d B, whose elements are `stride` floats apart.
void transform_input_tile(const WinogradTile& tile, int64_t channels, float* v, int64_t stride) {
  for_each_vector(hn::ScalableTag<float>(), channels, [&](int64_t c, auto memory) HWY_ATTR {
    using V = decltype(memory.load(v));
    V d[WinogradTile::kElements];
    for (int64_t i = 0; i < WinogradTile::kElements; ++i) d[i] = memory.load(tile.cells[i] + c);
    for (int64_t i = 0; i < 4; ++i) transform_input(d[i], d[4 + i], d[8 + i], d[12 + i]);
    for (int64_t i = 0; i < 16; i += 4) transform_input(d[i], d[i + 1], d[i + 2], d[i + 3]);
    for (int64_t i = 0; i < WinogradTile::kElements; ++i) memory.store(d[i], v + i * stride + c);
  });
}

// Elements 0 to 3 of m become Aᵀ m A + bias, the results of the tile's four cells.
void transform_output_tile(float* m, int64_t stride, const float* bias, int64_t channels) {
  for_each_vector(hn::ScalableTag<float>(), channels, [=](int64_t c, auto memory) HWY_ATTR {
    using V = decltype(memory.load(m));
    const auto at = [=](int64_t i, int64_t j) HWY_ATTR { return memory.load(m + (4 * i + j) * stride + c); };
    V above[4], below[4];
    for (int64_t j = 0; j < 4; ++j) {
      const V sum = hn::Add(at(1, j), at(2, j)), difference = hn::Sub(at(1, j), at(2, j));
      above[j] = hn::Add(at(0, j), sum);
      below[j] = hn::Sub(difference, at(3, j));
    }
    const V b = memory.load(bias + c);
    const auto left = [&](const V* row) HWY_ATTR { return hn::Add(hn::Add(row[0], row[1]), hn::Add(row[2], b)); };
    const auto right = [&](const V* row) HWY_ATTR { return hn::Add(hn::Sub(row[1], row[2]), hn::Sub(b, row[3])); };
    memory.store(left(above), m + c);
    memory.store(right(above), m + stride + c);
    memory.store(left(below), m + 2 * stride + c);
    memory.store(right(below), m + 3 * stride + c);
  });
}

// A row of y from its values before the epilogue.
void finish_cell(const float* values, const OutputBlock& out) {
  with_activation(out.epilogue.activation, [&](auto kind) HWY_ATTR {
    finish_row<kind()>([values](auto d, int64_t c) HWY_ATTR { return hn::LoadU(d, values + c); }, out, 0);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <array>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/isa/dispatch_internal.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(transform_input_tile, nullptr);
VITRAIL_EXPORT(transform_output_tile, nullptr);
VITRAIL_EXPORT(finish_cell, nullptr);

constexpr int64_t kElements = WinogradTile::kElements;
constexpr int64_t kMaxLanes = 16;  // the scratch memory ends with padding: finish_cell() reads complete vectors
constexpr int64_t kRowsPerGemm = 256;
constexpr int64_t kTilesPerTask = 8;
constexpr int64_t kTransformedValues = 1 << 20;  // 4 MiB are computed at a time

// G g Gᵀ of a filter g [3, 3].
std::array<float, kElements> transformed_filter(const float* g) {
  constexpr std::array<std::array<float, 3>, 4> kG{{{1, 0, 0}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0, 0, 1}}};
  std::array<float, kElements> u{};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      for (size_t y = 0; y < 3; ++y) {
        for (size_t x = 0; x < 3; ++x) u[4 * i + j] += kG[i][y] * kG[j][x] * g[3 * y + x];
      }
    }
  }
  return u;
}

// The tiles of maps, in row-major order.
struct TileGrid {
  const Neighbourhoods& map;
  int64_t rows = ceil_div(map.height, 2), columns = ceil_div(map.width, 2);

  int64_t per_map() const { return rows * columns; }
  // The first cell of the 2×2 results, and its map.
  struct Place {
    int64_t index, row, column;
  };
  Place place(int64_t tile) const { return {tile / per_map(), tile / columns % rows * 2, tile % columns * 2}; }
  int64_t cell(const Place& place, int64_t dy, int64_t dx) const {
    return (place.index * map.height + place.row + dy) * map.width + place.column + dx;
  }
  bool inside(const Place& place, int64_t dy, int64_t dx) const {
    const int64_t row = place.row + dy, column = place.column + dx;
    return row >= 0 && row < map.height && column >= 0 && column < map.width;
  }
};

}  // namespace

bool WinogradConvolution::applies(int64_t out, int64_t channels, int64_t stride) {
  return stride == 1 && std::min(out, channels) >= kMaxLanes && active_isa() != Isa::scalar;
}

WinogradConvolution::WinogradConvolution(const float* weight, const float* bias, int64_t out, int64_t channels)
    : out_(out), channels_(channels), bias_(zero_weights<float>(out)), zeros_(zero_weights<float>(channels)) {
  if (bias) std::copy_n(bias, out, bias_.get());
  std::vector<float> transformed(static_cast<size_t>(kElements * out * channels));
  parallel_for(0, out * channels, 4096, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const std::array<float, kElements> u = transformed_filter(weight + i * Neighbourhoods::kTaps);
      for (int64_t k = 0; k < kElements; ++k) transformed[k * out * channels + i] = u[k];
    }
  });
  for (int64_t k = 0; k < kElements; ++k)
    weights_.emplace_back(transformed.data() + k * out * channels, nullptr, out, channels);
}

size_t WinogradConvolution::packed_bytes() const {
  size_t bytes = 0;
  for (const PackedLinear& weight : weights_) bytes += weight.packed_bytes();
  return bytes + static_cast<size_t>(out_ + channels_) * sizeof(float);
}

int64_t WinogradConvolution::tiles_at_a_time(const Neighbourhoods& map, int64_t maps) const {
  const int64_t fit = kTransformedValues / (kElements * (channels_ + out_));
  return std::min(TileGrid{map}.per_map() * maps, round_up(std::max<int64_t>(fit, 1), kRowsPerGemm));
}

size_t WinogradConvolution::scratch_bytes(const Neighbourhoods& map, int64_t maps) const {
  return static_cast<size_t>(kElements * tiles_at_a_time(map, maps) * (channels_ + out_) + kMaxLanes) * sizeof(float);
}

void WinogradConvolution::run(const float* x, const Neighbourhoods& map, int64_t maps, const MatrixView<float>& y,
                              const Epilogue& epilogue, std::byte* scratch) const {
  const TileGrid grid{map};
  const int64_t all = grid.per_map() * maps, tiles = tiles_at_a_time(map, maps);
  const int64_t input_stride = tiles * channels_, output_stride = tiles * out_;
  auto* const inputs = reinterpret_cast<float*>(scratch);
  float* const outputs = inputs + kElements * input_stride;
  const auto input_tile = &VITRAIL_DISPATCH(transform_input_tile);
  const auto output_tile = &VITRAIL_DISPATCH(transform_output_tile);
  const auto finish = &VITRAIL_DISPATCH(finish_cell);
  for (int64_t start = 0; start < all; start += tiles) {
    const int64_t count = std::min(tiles, all - start);
    parallel_for(0, count, kTilesPerTask, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        const TileGrid::Place place = grid.place(start + t);
        WinogradTile tile;
        for (int64_t i = 0; i < kElements; ++i) {
          const int64_t dy = i / 4 - 1, dx = i % 4 - 1;
          tile.cells[i] = grid.inside(place, dy, dx) ? x + grid.cell(place, dy, dx) * channels_ : zeros_.get();
        }
        input_tile(tile, channels_, inputs + t * channels_, input_stride);
      }
    });
    const int64_t parts = ceil_div(count, kRowsPerGemm);
    parallel_for(0, kElements * parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t k = task / parts, row = task % parts * kRowsPerGemm;
        weights_[k].run({inputs + k * input_stride + row * channels_, channels_},
                        {outputs + k * output_stride + row * out_, out_},
                        {.count = std::min(kRowsPerGemm, count - row)}, {}, nullptr);
      }
    });
    parallel_for(0, count, kTilesPerTask, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        output_tile(outputs + t * out_, output_stride, bias_.get(), out_);
        const TileGrid::Place place = grid.place(start + t);
        for (int64_t i = 0; i < 4; ++i) {
          if (!grid.inside(place, i / 2, i % 2)) continue;
          const int64_t cell = grid.cell(place, i / 2, i % 2);
          OutputBlock out{1, out_, {y.data + cell * y.ld, y.ld}, epilogue};
          if (out.epilogue.residual.data) out.epilogue.residual.data += cell * epilogue.residual.ld;
          finish(outputs + i * output_stride + t * out_, out);
        }
      }
    });
  }
}

}  // namespace vitrail::kernels
#endif
