// SPDX-License-Identifier: Apache-2.0
// PackedLinear by oneDNN's matmul.  Activation and residual follow as a pass of our own kernels over the rows: the same
// functions as in our own GEMM, to the bit.
#include <cstdint>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/rowwise/layer_norm.h"

namespace vitrail::kernels {
namespace {

constexpr size_t kAlignment = 64;

size_t round_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class OneDnnGemm : public PackedGemm {
 public:
  OneDnnGemm(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out), in_(in), matmul_(weight, bias, out, in) {}

  bool fast() const { return matmul_.fast(); }

  // The scratch: oneDNN's scratchpad, then x Wᵀ + b where a residual follows, which may be y itself.
  void run(const GemmArgs& args) const override {
    const int64_t rows = args.rows.count;
    if (rows <= 0) return;
    const bool has_residual = args.epilogue.residual.data != nullptr;
    const MatrixView<float> biased =
        has_residual
            ? MatrixView<float>{reinterpret_cast<float*>(args.scratch + round_up(scratchpad_bytes(rows))), out_}
            : args.y;
    std::vector<std::byte> larger;
    std::byte* scratchpad = args.scratch;
    if (const size_t need = matmul_.scratchpad_bytes(rows, args.x.ld, biased.ld); need > scratchpad_bytes(rows)) {
      larger.resize(need + kAlignment);  // strides for which oneDNN wants more than for contiguous rows
      scratchpad = larger.data() + (kAlignment - reinterpret_cast<uintptr_t>(larger.data()) % kAlignment) % kAlignment;
    }
    matmul_.run(args.x.data, args.x.ld, biased.data, biased.ld, rows, scratchpad);
    apply_epilogue(args, biased);
  }

  void prepare(int64_t rows, int64_t ldx, int64_t ldy) const override {
    if (rows > 0) matmul_.prepare(rows, ldx, ldy);
  }
  size_t scratch_bytes(const LinearRows& rows) const override {
    if (rows.count <= 0) return 0;
    return round_up(scratchpad_bytes(rows.count)) + static_cast<size_t>(rows.count * out_) * sizeof(float);
  }
  size_t packed_bytes() const override { return matmul_.packed_bytes(); }
  bool has_own_loops() const override { return false; }

 private:
  size_t scratchpad_bytes(int64_t rows) const { return matmul_.scratchpad_bytes(rows, in_, out_); }

  void apply_epilogue(const GemmArgs& args, const MatrixView<float>& biased) const {
    const Activation activation = args.epilogue.activation;
    const Residual& residual = args.epilogue.residual;
    if (activation == Activation::none && !residual.data) return;
    parallel_for(0, args.rows.count, 1 + 4096 / (out_ + 1), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        float* const row = biased.data + r * biased.ld;
        if (activation != Activation::none) activate(activation, row, row, out_);
        if (!residual.data) continue;
        residual_layer_norm(residual.data + r * residual.ld, row, residual.scale, nullptr, nullptr, 0,
                            args.y.data + r * args.y.ld, nullptr, 1, out_);
      }
    });
  }

  int64_t out_, in_;
  onednn::PackedMatmul matmul_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_onednn_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  auto gemm = std::make_unique<OneDnnGemm>(weight, bias, out, in);
  if (!gemm->fast()) return nullptr;
  return gemm;
}

}  // namespace vitrail::kernels
