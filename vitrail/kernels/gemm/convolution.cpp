// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/convolution.h"

#include <algorithm>
#include <vector>

#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/winograd_internal.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::kernels {
namespace {

constexpr int64_t kTaps = Neighbourhoods::kTaps;

// Neighbourhoods that are multiplied at a time: they stay in the second-level caches, and are enough rows for a GEMM
// that reads its weight again for each part.
int64_t rows_at_a_time(const Neighbourhoods& map, int64_t maps, const PackedGemm& gemm) {
  constexpr int64_t kMinRows = 512;
  const int64_t values = gemm.reads_rows_once() ? 1 << 20 : 1 << 19;
  return std::min(std::max(values / map.values(), kMinRows), maps * map.rows() * map.columns());
}

size_t unfolded_bytes(const Neighbourhoods& map, int64_t rows, const PackedGemm& gemm) {
  constexpr size_t kAlignment = 64;
  if (gemm.reads_rows_once()) return 0;
  return round_up(static_cast<size_t>(rows * map.values()) * sizeof(float), kAlignment);
}

// From a cell on.
class NeighbourhoodRows : public RowSource {
 public:
  NeighbourhoodRows(const float* x, const Neighbourhoods& map, int64_t first) : x_(x), map_(map), first_(first) {}
  void write(int64_t row, float* x) const override { unfold_cell(x_, map_, first_ + row, x); }

 private:
  const float* x_;
  const Neighbourhoods& map_;
  int64_t first_;
};

// [out, (channel, tap)] → [out, (tap, channel)]
std::vector<float> taps_first(const float* weight, int64_t out, int64_t channels) {
  std::vector<float> result(static_cast<size_t>(out * channels * kTaps));
  for (int64_t i = 0; i < out; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < kTaps; ++tap) result[(i * kTaps + tap) * channels + c] = *weight++;
    }
  }
  return result;
}

}  // namespace

PackedConvolution::PackedConvolution(const float* weight, const float* bias, int64_t out, int64_t channels,
                                     int64_t stride, Precision precision) {
  if (precision == Precision::fp32 && WinogradConvolution::applies(out, channels, stride)) {
    winograd_ = std::make_unique<const WinogradConvolution>(weight, bias, out, channels);
  } else {
    of_neighbourhoods_ = make_gemm(taps_first(weight, out, channels).data(), bias, out, kTaps * channels, precision);
  }
}
PackedConvolution::PackedConvolution(const int8_t* values, const float* scales, const float* bias, int64_t out,
                                     int64_t channels)
    : of_neighbourhoods_(make_gemm({values, scales}, bias, out, kTaps * channels)) {}
PackedConvolution::~PackedConvolution() = default;

Arithmetic PackedConvolution::arithmetic() const {
  return winograd_ ? Arithmetic::fp32 : of_neighbourhoods_->arithmetic();
}
const char* PackedConvolution::implementation() const {
  return winograd_ ? name_of(active_isa()) : implementation_of(*of_neighbourhoods_);
}
size_t PackedConvolution::packed_bytes() const {
  return winograd_ ? winograd_->packed_bytes() : of_neighbourhoods_->packed_bytes();
}

size_t PackedConvolution::scratch_bytes(const Neighbourhoods& map, int64_t maps) const {
  if (winograd_) return winograd_->scratch_bytes(map, maps);
  const int64_t rows = rows_at_a_time(map, maps, *of_neighbourhoods_);
  return unfolded_bytes(map, rows, *of_neighbourhoods_) + of_neighbourhoods_->scratch_bytes({.count = rows});
}

void PackedConvolution::run(const float* x, const Neighbourhoods& map, int64_t maps, const MatrixView<float>& y,
                            const Epilogue& epilogue, std::byte* scratch) const {
  if (winograd_) return winograd_->run(x, map, maps, y, epilogue, scratch);
  const PackedGemm& gemm = *of_neighbourhoods_;
  const int64_t cells = maps * map.rows() * map.columns(), rows = rows_at_a_time(map, maps, gemm);
  auto* const unfolded = reinterpret_cast<float*>(scratch);
  for (int64_t first = 0; first < cells; first += rows) {
    const NeighbourhoodRows source(x, map, first);
    GemmArgs args{.x = {unfolded, map.values()},
                  .y = {y.data + first * y.ld, y.ld},
                  .rows = {.count = std::min(rows, cells - first)},
                  .epilogue = epilogue,
                  .scratch = scratch + unfolded_bytes(map, rows, gemm)};
    if (epilogue.residual.data) args.epilogue.residual.data += first * epilogue.residual.ld;
    if (gemm.reads_rows_once()) {
      args.row_source = &source;
    } else {
      unfold_taps(x, map, first, args.rows.count, unfolded);
    }
    gemm.run(args);
  }
}

}  // namespace vitrail::kernels
