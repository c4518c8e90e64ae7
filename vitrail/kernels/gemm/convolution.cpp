// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/convolution.h"

#include <algorithm>
#include <vector>

#include "vitrail/kernels/gemm/winograd_internal.h"

namespace vitrail::kernels {
namespace {

constexpr int64_t kTaps = Neighbourhoods::kTaps;

// Neighbourhoods that are unfolded at a time: they stay in the second-level caches, and are enough rows for a GEMM that
// reads its weight again for each part.
int64_t rows_at_a_time(const Neighbourhoods& map, int64_t maps) {
  constexpr int64_t kValues = 1 << 19, kMinRows = 512;
  return std::min(std::max(kValues / map.values(), kMinRows), maps * map.rows() * map.columns());
}

size_t unfolded_bytes(const Neighbourhoods& map, int64_t maps) {
  constexpr size_t kAlignment = 64;
  const int64_t values = rows_at_a_time(map, maps) * map.values();
  return round_up(static_cast<size_t>(values) * sizeof(float), kAlignment);
}

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
    direct_ = std::make_unique<const PackedLinear>(taps_first(weight, out, channels).data(), bias, out,
                                                   kTaps * channels, precision);
  }
}
PackedConvolution::PackedConvolution(PackedLinear of_neighbourhoods)
    : direct_(std::make_unique<const PackedLinear>(std::move(of_neighbourhoods))) {}
PackedConvolution::~PackedConvolution() = default;

const PackedLinear& PackedConvolution::linear() const { return winograd_ ? winograd_->element(0) : *direct_; }
size_t PackedConvolution::packed_bytes() const {
  return winograd_ ? winograd_->packed_bytes() : direct_->packed_bytes();
}

size_t PackedConvolution::scratch_bytes(const Neighbourhoods& map, int64_t maps) const {
  if (winograd_) return winograd_->scratch_bytes(map, maps);
  return unfolded_bytes(map, maps) + direct_->scratch_bytes({.count = rows_at_a_time(map, maps)});
}

void PackedConvolution::run(const float* x, const Neighbourhoods& map, int64_t maps, const MatrixView<float>& y,
                            const Epilogue& epilogue, std::byte* scratch) const {
  if (winograd_) return winograd_->run(x, map, maps, y, epilogue, scratch);
  const int64_t cells = maps * map.rows() * map.columns(), rows = rows_at_a_time(map, maps);
  auto* const unfolded = reinterpret_cast<float*>(scratch);
  Epilogue part = epilogue;
  for (int64_t first = 0; first < cells; first += rows) {
    const int64_t count = std::min(rows, cells - first);
    unfold_taps(x, map, first, count, unfolded);
    if (part.residual.data) part.residual.data = epilogue.residual.data + first * epilogue.residual.ld;
    direct_->run({unfolded, map.values()}, {y.data + first * y.ld, y.ld}, {.count = count}, part,
                 scratch + unfolded_bytes(map, maps));
  }
}

}  // namespace vitrail::kernels
