// PackedLinear in bf16 by AVX-512 BF16: x is rounded first, into the scratch, two numbers to a word of 32 bits; the
// weight is packed in panels of such words, [word of inputs][panel columns]; products are summed in fp32 (Highway 1.0
// has no such product: avx512_sums.cpp), and bias, activation and residual follow while a task's sums are in the cache.
#include <algorithm>

#include "vitrail/kernels/aligned_array.h"
#include "vitrail/kernels/packed_product.h"
#include "vitrail/kernels/word_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/bf16_product.cpp"
#include "vitrail/kernels/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/bf16-inl.h"
#include "vitrail/kernels/epilogue-inl.h"

#ifndef VITRAIL_KERNELS_BF16_PRODUCT_ONCE
#define VITRAIL_KERNELS_BF16_PRODUCT_ONCE
namespace vitrail::kernels {
namespace {

struct Bf16Task {
  WordTask words;
  const float* bias;
  TaskOutput to;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

void round_row_to_words(const float* x, BFloat16* words, int64_t in) { round_row(x, words, in); }

template <Activation kind>
HWY_INLINE void finish_bf16_rows(const Bf16Task& task, const float* sums) {
  for (int64_t r = 0; r < task.to.rows; ++r, sums += kMostColumns) {
    const float* const residual = task.to.residual.data ? task.to.residual.data + r * task.to.residual.ld : nullptr;
    const auto sum = [&](auto d, int64_t c)
                         HWY_ATTR { return hn::Add(hn::Load(d, sums + c), hn::Load(d, task.bias + c)); };
    finish_row<kind, true>(sum, 0, task.to.columns, task.to.residual.scale, residual, task.to.y + r * task.to.ldy);
  }
}

void run_bf16_task(const Bf16Task& task) {
  HWY_ALIGN float sums[kMostRows * kMostColumns];
  sum_words(task.words, task.to.rows, task.to.columns, sums);
  const float* const done = sums;
  with_activation(task.to.activation, [&task, done](auto kind) HWY_ATTR { finish_bf16_rows<kind()>(task, done); });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(round_row_to_words);
VITRAIL_EXPORT(run_bf16_task);

class Bf16TileProduct : public PackedProduct {
 public:
  Bf16TileProduct(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out),
        in_(in),
        words_((in + 1) / 2),
        panels_((out + kAvx512Columns - 1) / kAvx512Columns),
        add_panel_(bf16_sums()),
        round_(&VITRAIL_DISPATCH(round_row_to_words)),
        run_task_(&VITRAIL_DISPATCH(run_bf16_task)),
        weight_(weight_array<int32_t>(panels_ * kAvx512Columns * words_)),
        bias_(weight_array<float>(panels_ * kAvx512Columns)) {
    parallel_for(0, panels_, 1 + 65536 / (kAvx512Columns * in + 1), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) pack_panel(weight, p);
    });
    for (int64_t c = 0; c < panels_ * kAvx512Columns; ++c) bias_[c] = bias && c < out ? bias[c] : 0.0f;
  }

  void run(const ProductArgs& args) const override {
    if (args.rows <= 0) return;
    auto* const x = reinterpret_cast<int32_t*>(args.scratch);
    round(args, x);
    const int64_t flops = 2 * kAvx512Columns * in_ * block_rows(args.rows);
    const int64_t grain = 1 + 400000 / (flops + 1);  // 400,000 operations take 2 µs: what it costs to wake a team
    for_each_tile_task(args.rows, panels_, kAvx512Columns, grain,
                       [&](int64_t row, int64_t rows, int64_t panel, int64_t count) {
                         run_task_(task(args, x + row * words_, row, rows, panel, count));
                       });
  }

  void prepare(int64_t, int64_t, int64_t, Activation) const override {}
  size_t scratch_bytes(int64_t rows) const override {
    return static_cast<size_t>(std::max<int64_t>(0, rows) * words_) * sizeof(int32_t);
  }
  size_t packed_bytes() const override { return static_cast<size_t>(panels_ * kAvx512Columns * (words_ + 1)) * 4; }

 private:
  // Word by word; zeros beyond the last input and the last column.
  void pack_panel(const float* weight, int64_t panel) {
    auto* to = reinterpret_cast<BFloat16*>(weight_.get() + panel * kAvx512Columns * words_);
    for (int64_t i = 0; i < 2 * words_; i += 2) {
      for (int64_t c = panel * kAvx512Columns; c < (panel + 1) * kAvx512Columns; ++c) {
        for (int64_t half = i; half < i + 2; ++half) {
          *to++ = c < out_ && half < in_ ? BFloat16(weight[c * in_ + half]) : BFloat16();
        }
      }
    }
  }

  // What fills the last word is multiplied by the weight's zeros, and so must be finite.
  void round(const ProductArgs& args, int32_t* x) const {
    parallel_for(0, args.rows, 1 + 32768 / (in_ + 1), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        int32_t* const words = x + r * words_;
        if (words_ > 0) words[words_ - 1] = 0;
        round_(args.x + r * args.ldx, reinterpret_cast<BFloat16*>(words), in_);
      }
    });
  }

  Bf16Task task(const ProductArgs& args, const int32_t* x, int64_t first, int64_t rows, int64_t panel,
                int64_t count) const {
    const int64_t column = panel * kAvx512Columns;
    return {.words = {x, weight_.get() + column * words_, words_, kAvx512Columns, add_panel_},
            .bias = bias_.get() + column,
            .to = output_of(args, first, rows, column, std::min(count * kAvx512Columns, out_ - column))};
  }

  int64_t out_, in_, words_, panels_;
  WordSums add_panel_;
  void (*round_)(const float*, BFloat16*, int64_t);
  void (*run_task_)(const Bf16Task&);
  AlignedArray<int32_t> weight_;
  AlignedArray<float> bias_;
};

}  // namespace

std::unique_ptr<PackedProduct> make_bf16_tile_product(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<Bf16TileProduct>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
#endif
