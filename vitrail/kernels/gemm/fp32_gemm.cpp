// SPDX-License-Identifier: Apache-2.0
// PackedLinear in fp32 by our own kernels.  The weight is packed in panels (fp32_microkernel-inl.h).  The accumulators
// of an output block (cache_blocking_internal.h) stay in the cache until bias, activation and residual are applied.
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/cache_blocking_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/fp32_gemm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/epilogue-inl.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"

#ifndef VITRAIL_KERNELS_FP32_GEMM_ONCE
#define VITRAIL_KERNELS_FP32_GEMM_ONCE
namespace vitrail::kernels {
namespace {

// One output block's operands.
struct Fp32Block {
  MatrixView<const float> x;  // [out.rows, depth]
  const float* panels;        // each [depth][panel columns]
  const float* bias;
  int64_t depth;
  OutputBlock out;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

int64_t columns_of_panel() { return panel_columns(); }

void pack_panel(const float* weight, int64_t in, int64_t columns, float* panel) {
  pack_transposed(weight, in, columns, in, 1.0f, panel);
}

// The epilogue of accumulators in memory, along whole rows: for activations, which take longer than the stores.
template <Activation kind>
HWY_INLINE void finish_rows(const Fp32Block& block, const float* accumulators, int64_t first_column) {
  for (int64_t r = 0; r < block.out.rows; ++r, accumulators += kMaxBlockColumns) {
    const auto biased = [&](auto d, int64_t c)
                            HWY_ATTR { return hn::Add(hn::Load(d, accumulators + c), hn::Load(d, block.bias + c)); };
    finish_row<kind>(biased, block.out, r, first_column);
  }
}

// The epilogue without an activation, of accumulators still in registers: the stores, which miss the cache, then
// overlap with the arithmetic of the next register tile.  For complete panels.
template <bool accumulate>
struct FinishedAccumulators {
  StoredAccumulators<accumulate> before;
  const float* bias;
  const float* scale;
  const float* residual;
  int64_t ld_residual;
  float* y;
  int64_t ldy;

  template <class D>
  HWY_INLINE hn::Vec<D> begin(D d, int64_t row, int64_t column) const {
    return before.begin(d, row, column);
  }
  template <class D>
  HWY_INLINE void end(D d, int64_t row, hn::Vec<D> left, hn::Vec<D> right) const {
    finish(d, row, 0, left);
    finish(d, row, static_cast<int64_t>(hn::Lanes(d)), right);
  }
  template <class D>
  HWY_INLINE void finish(D d, int64_t row, int64_t c, hn::Vec<D> v) const {
    v = hn::Add(v, hn::Load(d, bias + c));
    if (scale) v = hn::Mul(hn::LoadU(d, scale + c), v);
    if (residual) v = hn::Add(v, hn::LoadU(d, residual + row * ld_residual + c));
    hn::StoreU(v, d, y + row * ldy + c);
  }
};

// accumulators += x · panels along [first, last) of K; the last block of K also finishes complete panels.
template <bool accumulate>
HWY_INLINE void multiply_depth_block(const Fp32Block& block, int64_t first, int64_t last, float* accumulators) {
  const int64_t width = panel_columns();
  const OutputBlock& out = block.out;
  const BlockPanels panels{block.panels, out.columns, block.depth, width};
  const bool finish = last == block.depth && out.epilogue.activation == Activation::none;
  for (int64_t column = 0; column < out.columns; column += width) {
    const float* const panel = block.panels + column * block.depth + first * width;
    const StoredAccumulators<accumulate> stored{accumulators + column, kMaxBlockColumns};
    const NextPanel next = panels.after(column, first, last);
    if (finish && column + width <= out.columns) {
      const Residual& residual = out.epilogue.residual;
      multiply_panel(block.x.data + first, block.x.ld, panel, last - first, out.rows,
                     FinishedAccumulators<accumulate>{
                         stored, block.bias + column, residual.scale ? residual.scale + column : nullptr,
                         residual.data ? residual.data + column : nullptr, residual.ld, out.y.data + column, out.y.ld},
                     next);
    } else {
      multiply_panel(block.x.data + first, block.x.ld, panel, last - first, out.rows, stored, next);
    }
  }
}

void multiply_block(const Fp32Block& block) {
  HWY_ALIGN float accumulators[RowBlocking{}.max * kMaxBlockColumns];
  const int64_t depth_blocks = std::max<int64_t>(1, ceil_div(block.depth, kMaxBlockDepth));
  multiply_depth_block<false>(block, 0, block.depth / depth_blocks, accumulators);
  for (int64_t i = 1; i < depth_blocks; ++i) {
    multiply_depth_block<true>(block, block.depth * i / depth_blocks, block.depth * (i + 1) / depth_blocks,
                               accumulators);
  }
  if (block.out.epilogue.activation == Activation::none) {
    const int64_t width = panel_columns();
    finish_rows<Activation::none>(block, accumulators, block.out.columns / width * width);
  } else {
    const float* const done = accumulators;
    with_activation(block.out.epilogue.activation,
                    [&block, done](auto kind) HWY_ATTR { finish_rows<kind()>(block, done, 0); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(columns_of_panel, nullptr);
VITRAIL_EXPORT(pack_panel, nullptr);
VITRAIL_EXPORT(multiply_block, nullptr);

class Fp32Gemm : public PackedGemm {
 public:
  Fp32Gemm(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out),
        in_(in),
        panel_columns_(VITRAIL_DISPATCH(columns_of_panel)()),
        panels_(ceil_div(out, panel_columns_)),
        multiply_block_(&VITRAIL_DISPATCH(multiply_block)),
        weight_(weight_array<float>(panels_ * panel_columns_ * in)),
        bias_(weight_array<float>(panels_ * panel_columns_)) {
    auto* const pack = &VITRAIL_DISPATCH(pack_panel);
    parallel_for(0, panels_, 1 + 65536 / (panel_columns_ * in + 1), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const int64_t column = p * panel_columns_;
        pack(weight + column * in, in, std::min(panel_columns_, out - column), weight_.get() + column * in);
      }
    });
    for (int64_t c = 0; c < panels_ * panel_columns_; ++c) bias_[c] = bias && c < out ? bias[c] : 0.0f;
  }

  void run(const GemmArgs& args) const override {
    if (args.rows.count <= 0) return;
    const BlockGrid grid{.rows = args.rows.count,
                         .block_rows = block_rows(args.rows.count),
                         .panels = panels_,
                         .panel_columns = panel_columns_};
    const int64_t flops_per_panel = 2 * panel_columns_ * in_ * grid.block_rows;
    const int64_t grain = 1 + 200'000 / (flops_per_panel + 1);  // these take as long as waking a thread
    for_each_output_block(grid, grain, [&](int64_t row, int64_t rows, int64_t panel, int64_t panels) {
      const int64_t column = panel * panel_columns_, columns = std::min(panels * panel_columns_, out_ - column);
      multiply_block_({.x = {args.x.data + row * args.x.ld, args.x.ld},
                       .panels = weight_.get() + column * in_,
                       .bias = bias_.get() + column,
                       .depth = in_,
                       .out = output_block(args, row, rows, column, columns)});
    });
  }

  size_t scratch_bytes(const LinearRows&) const override { return 0; }
  size_t packed_bytes() const override {
    return static_cast<size_t>(panels_ * panel_columns_ * (in_ + 1)) * sizeof(float);
  }
  Arithmetic arithmetic() const override { return Arithmetic::fp32; }

 private:
  int64_t out_, in_, panel_columns_, panels_;
  void (*multiply_block_)(const Fp32Block&);
  AlignedArray<float> weight_, bias_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_fp32_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<Fp32Gemm>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
#endif
