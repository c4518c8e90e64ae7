// SPDX-License-Identifier: Apache-2.0
// PackedLinear by oneDNN's matmul, in tiles that the threads take one after the other.  Activation and residual follow
// as a pass of our own kernels over the tile: the same functions as in our own GEMM, to the bit.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/isa/thread_scratch_internal.h"
#include "vitrail/kernels/rowwise/layer_norm.h"

namespace vitrail::kernels {
namespace {

// With 1,024 inputs, a full tile has 0.1 GFLOP, hundreds of times what it costs to call oneDNN.  The sizes do
// not depend on the number of threads, so that results do not either.
constexpr int64_t kTileRows = 128, kPanelColumns = 512;  // the columns are a multiple of kColumnBlock
constexpr int64_t kColumnBlock = 64;                     // oneDNN's layouts have blocks of at most this many columns

class OneDnnGemm : public PackedGemm {
 public:
  OneDnnGemm(const float* weight, const float* bias, int64_t out, int64_t in) : out_(out) {
    width_ = ceil_div(ceil_div(out, ceil_div(out, kPanelColumns)), kColumnBlock) * kColumnBlock;
    for (int64_t first = 0; first < out; first += width_) {
      panels_.emplace_back(weight + first * in, bias ? bias + first : nullptr, std::min(width_, out - first), in);
    }
  }

  bool fast() const {
    return std::all_of(panels_.begin(), panels_.end(), [](const auto& panel) { return panel.fast(); });
  }

  void run(const GemmArgs& args) const override {
    const int64_t rows = args.rows.count, blocks = ceil_div(rows, kTileRows);
    parallel_for_balanced(0, std::ssize(panels_) * blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t tile = first; tile < last; ++tile) {
        const int64_t block = tile % blocks;
        run_tile(args, tile / blocks, rows * block / blocks, rows * (block + 1) / blocks);
      }
    });
  }

  void prepare(int64_t rows, int64_t ldx, int64_t /*ldy*/) const override {
    if (rows <= 0) return;
    const int64_t blocks = ceil_div(rows, kTileRows);
    for (const int64_t block_rows : {rows / blocks, ceil_div(rows, blocks)}) {
      for (const onednn::PackedMatmul& panel : panels_) panel.prepare(block_rows, ldx);
    }
  }
  size_t scratch_bytes(const LinearRows&) const override { return 0; }
  size_t packed_bytes() const override {
    size_t bytes = 0;
    for (const onednn::PackedMatmul& panel : panels_) bytes += panel.packed_bytes();
    return bytes;
  }
  Arithmetic arithmetic() const override { return Arithmetic::fp32; }
  const char* library() const override { return "oneDNN"; }

 private:
  // Rows [first, last) of y and the columns of one panel.  x Wᵀ + b is first written apart from y: oneDNN is fast for
  // contiguous results only, and a residual may be y itself.
  void run_tile(const GemmArgs& args, int64_t panel, int64_t first, int64_t last) const {
    const int64_t column = panel * width_, columns = std::min(width_, out_ - column);
    thread_local std::vector<float> tile(static_cast<size_t>(kTileRows * kPanelColumns));
    panels_[panel].run(args.x.data + first * args.x.ld, args.x.ld, tile.data(), last - first);
    const auto& [activation, residual] = args.epilogue;
    for (int64_t r = first; r < last; ++r) {
      float *const row = tile.data() + (r - first) * columns, *const y = args.y.data + r * args.y.ld + column;
      if (activation != Activation::none) activate(activation, row, row, columns);
      if (!residual.data) {
        std::copy_n(row, columns, y);
        continue;
      }
      residual_layer_norm(residual.data + r * residual.ld + column, row,
                          residual.scale ? residual.scale + column : nullptr, nullptr, nullptr, 0, y, nullptr, 1,
                          columns);
    }
  }

  int64_t out_, width_ = 0;
  std::vector<onednn::PackedMatmul> panels_;  // each has width_ columns of y, the last one the remainder
};

}  // namespace

std::unique_ptr<PackedGemm> make_onednn_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  auto gemm = std::make_unique<OneDnnGemm>(weight, bias, out, in);
  if (!gemm->fast()) return nullptr;
  return gemm;
}

}  // namespace vitrail::kernels
