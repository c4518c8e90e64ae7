// SPDX-License-Identifier: Apache-2.0
// PackedLinear by oneDNN's matmul.  Activation and residual follow as a pass of our own kernels over the rows: the same
// functions, to the bit, as the tile product has.
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

  // The scratch: what oneDNN works in, then the product where a residual follows, which may be y itself.
  void run(const GemmArgs& args) const override {
    if (args.rows <= 0) return;
    auto* const product =
        args.residual.data ? reinterpret_cast<float*>(args.scratch + round_up(pad(args.rows))) : args.y;
    const int64_t ld = args.residual.data ? out_ : args.ldy;
    std::vector<std::byte> more;
    std::byte* pad_memory = args.scratch;
    if (const size_t need = matmul_.scratchpad_bytes(args.rows, args.ldx, ld); need > pad(args.rows)) {
      more.resize(need + kAlignment);  // strides for which oneDNN wants more than for contiguous rows
      pad_memory = more.data() + (kAlignment - reinterpret_cast<uintptr_t>(more.data()) % kAlignment) % kAlignment;
    }
    matmul_.run(args.x, args.ldx, product, ld, args.rows, pad_memory);
    finish(args, product, ld);
  }

  void prepare(int64_t rows, int64_t ldx, int64_t ldy, Activation) const override {
    if (rows > 0) matmul_.prepare(rows, ldx, ldy);
  }
  size_t scratch_bytes(int64_t rows, int64_t) const override {
    if (rows <= 0) return 0;
    return round_up(pad(rows)) + static_cast<size_t>(rows * out_) * sizeof(float);
  }
  size_t packed_bytes() const override { return matmul_.packed_bytes(); }
  bool has_own_loops() const override { return false; }

 private:
  size_t pad(int64_t rows) const { return matmul_.scratchpad_bytes(rows, in_, out_); }

  void finish(const GemmArgs& args, float* product, int64_t ld) const {
    if (args.activation == Activation::none && !args.residual.data) return;
    parallel_for(0, args.rows, 1 + 4096 / (out_ + 1), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        float* const row = product + r * ld;
        if (args.activation != Activation::none) activate(args.activation, row, row, out_);
        if (!args.residual.data) continue;
        residual_layer_norm(args.residual.data + r * args.residual.ld, row, args.residual.scale, nullptr, nullptr, 0,
                            args.y + r * args.ldy, nullptr, 1, out_);
      }
    });
  }

  int64_t out_, in_;
  onednn::PackedMatmul matmul_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_onednn_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  auto product = std::make_unique<OneDnnGemm>(weight, bias, out, in);
  if (!product->fast()) return nullptr;
  return product;
}

}  // namespace vitrail::kernels
