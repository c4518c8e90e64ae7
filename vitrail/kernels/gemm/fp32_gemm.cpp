// SPDX-License-Identifier: Apache-2.0
// PackedLinear by our own tiles.  The weight is packed in panels (fp32_microkernel-inl.h); a task is one block of rows
// of x by a few neighbouring panels, whose sums stay in the cache until bias, activation and residual have been
// applied.
#include "vitrail/kernels/gemm/gemm_tasks_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/fp32_gemm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/epilogue-inl.h"
#include "vitrail/kernels/gemm/fp32_microkernel-inl.h"

#ifndef VITRAIL_KERNELS_TILE_PRODUCT_ONCE
#define VITRAIL_KERNELS_TILE_PRODUCT_ONCE
namespace vitrail::kernels {
namespace {

struct Task {
  const float* x;
  int64_t ldx;
  const float* panels;  // each [in][panel columns]
  const float* bias;
  int64_t in;
  TaskOutput to;
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

// The epilogue of sums that lie in memory, along whole rows: for activations, which take longer than the stores.
template <Activation kind>
HWY_INLINE void finish_rows(const Task& task, const float* sums, int64_t first_column) {
  for (int64_t r = 0; r < task.to.rows; ++r, sums += kMaxColumns) {
    const Residual& add = task.to.epilogue.residual;
    const float* const residual = add.data ? add.data + r * add.ld : nullptr;
    const auto sum = [&](auto d, int64_t c)
                         HWY_ATTR { return hn::Add(hn::Load(d, sums + c), hn::Load(d, task.bias + c)); };
    finish_row<kind>(sum, first_column, task.to.columns, add.scale, residual, task.to.y.data + r * task.to.y.ld);
  }
}

// The epilogue without an activation, on sums still in registers: the stores, which miss the cache, then overlap with
// the next tile's products.  For whole panels.
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

template <bool accumulate>
HWY_INLINE void run_depth(const Task& task, int64_t first, int64_t last, float* sums) {
  const int64_t width = panel_columns();
  const bool finish = last == task.in && task.to.epilogue.activation == Activation::none;
  for (int64_t column = 0; column < task.to.columns; column += width) {
    const float* const panel = task.panels + column * task.in + first * width;
    const StoredAccumulators<accumulate> stored{sums + column, kMaxColumns};
    if (finish && column + width <= task.to.columns) {
      const Residual& add = task.to.epilogue.residual;
      multiply_panel(task.x + first, task.ldx, panel, last - first, task.to.rows,
                     FinishedAccumulators<accumulate>{
                         stored, task.bias + column, add.scale ? add.scale + column : nullptr,
                         add.data ? add.data + column : nullptr, add.ld, task.to.y.data + column, task.to.y.ld});
    } else {
      multiply_panel(task.x + first, task.ldx, panel, last - first, task.to.rows, stored);
    }
  }
}

void run_task(const Task& task) {
  HWY_ALIGN float sums[kMaxRows * kMaxColumns];
  const int64_t blocks = std::max<int64_t>(1, (task.in + kMaxDepth - 1) / kMaxDepth);
  run_depth<false>(task, 0, task.in / blocks, sums);
  for (int64_t block = 1; block < blocks; ++block) {
    run_depth<true>(task, task.in * block / blocks, task.in * (block + 1) / blocks, sums);
  }
  if (task.to.epilogue.activation == Activation::none) {
    const int64_t width = panel_columns();
    finish_rows<Activation::none>(task, sums, task.to.columns / width * width);
  } else {
    const float* const done = sums;
    with_activation(task.to.epilogue.activation,
                    [&task, done](auto kind) HWY_ATTR { finish_rows<kind()>(task, done, 0); });
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
VITRAIL_EXPORT(run_task, nullptr);

class Fp32Gemm : public PackedGemm {
 public:
  Fp32Gemm(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out),
        in_(in),
        width_(VITRAIL_DISPATCH(columns_of_panel)()),
        panels_((out + width_ - 1) / width_),
        run_task_(&VITRAIL_DISPATCH(run_task)),
        weight_(weight_array<float>(panels_ * width_ * in)),
        bias_(weight_array<float>(panels_ * width_)) {
    auto* const pack = &VITRAIL_DISPATCH(pack_panel);
    parallel_for(0, panels_, 1 + 65536 / (width_ * in + 1), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        pack(weight + p * width_ * in, in, std::min(width_, out - p * width_), weight_.get() + p * width_ * in);
      }
    });
    for (int64_t c = 0; c < panels_ * width_; ++c) bias_[c] = bias && c < out ? bias[c] : 0.0f;
  }

  void run(const GemmArgs& args) const override {
    if (args.rows.count <= 0) return;
    const int64_t block = block_rows(args.rows.count), flops = 2 * width_ * in_ * block;
    const int64_t grain = 1 + 200000 / (flops + 1);  // 200,000 operations take 2 µs: what it costs to wake a team
    for_each_gemm_task(args.rows.count, block, panels_, width_, grain,
                       [&](int64_t row, int64_t rows, int64_t panel, int64_t count) {
                         run_task_(task(args, row, rows, panel, count));
                       });
  }

  size_t scratch_bytes(const LinearRows&) const override { return 0; }
  size_t packed_bytes() const override { return static_cast<size_t>(panels_ * width_ * (in_ + 1)) * sizeof(float); }

 private:
  Task task(const GemmArgs& args, int64_t first, int64_t rows, int64_t panel, int64_t count) const {
    const int64_t column = panel * width_;
    return {.x = args.x.data + first * args.x.ld,
            .ldx = args.x.ld,
            .panels = weight_.get() + column * in_,
            .bias = bias_.get() + column,
            .in = in_,
            .to = output_of(args, first, rows, column, std::min(count * width_, out_ - column))};
  }

  int64_t out_, in_, width_, panels_;
  void (*run_task_)(const Task&);
  AlignedArray<float> weight_, bias_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_fp32_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<Fp32Gemm>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
#endif
