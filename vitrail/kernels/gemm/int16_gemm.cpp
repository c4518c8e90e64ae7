// SPDX-License-Identifier: Apache-2.0
// PackedLinear in 16 bits by AVX-512 VNNI (quantized_gemm_internal.h): whole numbers with a step for each row of x and
// of the weight (int16_quantization_internal.h), two to a word of 32 bits, whose products are summed exactly.  They
// take about as long as products of bf16, which keep eight bits of each number, and lose a fourteenth of what these do
// where rows have 192 numbers, whose square mean is then 2,364 steps, and a third where they have 3072, of 591.
#include <vector>

#include "vitrail/kernels/gemm/int16_quantization_internal.h"
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/int16_gemm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/epilogue-inl.h"
#include "vitrail/kernels/gemm/int16_rows-inl.h"

#ifndef VITRAIL_KERNELS_INT16_PRODUCT_ONCE
#define VITRAIL_KERNELS_INT16_PRODUCT_ONCE
namespace vitrail::kernels {
namespace {

// A row's step stands before its words.
struct Int16Task {
  QuantizedGemmTask words;
  const float* column_steps;
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

float write_int16_row(const float* x, int64_t in, float most, int16_t* numbers) {
  return round_to_int16(x, in, most, numbers);
}

template <Activation kind>
HWY_INLINE void finish_int16_rows(const Int16Task& task, const int32_t* sums) {
  const TaskOutput& to = task.words.to;
  const int32_t* x = task.words.x;
  for (int64_t r = 0; r < to.rows; ++r, x += task.words.ldx, sums += kMaxColumns) {
    const Residual& add = to.epilogue.residual;
    const float* const residual = add.data ? add.data + r * add.ld : nullptr;
    const float step = row_metadata_before<float>(x);
    const auto sum = [&](auto d, int64_t c) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> d32;
      const auto scale = hn::Mul(hn::Set(d, step), hn::Load(d, task.column_steps + c));
      return hn::MulAdd(hn::ConvertTo(d, hn::Load(d32, sums + c)), scale, hn::Load(d, task.words.bias + c));
    };
    finish_row<kind, true>(sum, 0, to.columns, add.scale, residual, to.y.data + r * to.y.ld);
  }
}

void run_int16_task(const Int16Task& task) {
  HWY_ALIGN int32_t sums[kMaxRows * kMaxColumns];
  accumulate_task(task.words, sums);
  const int32_t* const done = sums;
  with_activation(task.words.to.epilogue.activation,
                  [&task, done](auto kind) HWY_ATTR { finish_int16_rows<kind()>(task, done); });
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(write_int16_row, nullptr);
VITRAIL_EXPORT(run_int16_task, nullptr);

class Int16Gemm : public QuantizedGemm {
 public:
  Int16Gemm(const float* weight, const float* bias, int64_t out, int64_t in, DotMicrokernel sums)
      : QuantizedGemm(
            bias, out, in,
            {.numbers = 2, .width = kAvx512Columns, .heading = kRowMetadataGroups<float>, .two_term_rows = false}),
        add_panel_(sums),
        round_(&VITRAIL_DISPATCH(write_int16_row)),
        run_task_(&VITRAIL_DISPATCH(run_int16_task)),
        most_(max_int16_scale_multiple(in)),
        steps_(zero_weights<float>(columns())) {
    parallel_for(0, out, 1 + 65536 / (in + 1), [&](int64_t first, int64_t last) {
      std::vector<int32_t> row(static_cast<size_t>(words()));
      for (int64_t c = first; c < last; ++c) {
        steps_[c] = round_(weight + c * in, in, most_, reinterpret_cast<int16_t*>(row.data()));
        int32_t* const column = panel(c / width()) + c % width();
        for (int64_t w = 0; w < words(); ++w) column[w * width()] = row[w];
      }
    });
  }

  size_t packed_bytes() const override { return static_cast<size_t>(columns() * (words() + 2)) * 4; }

 private:
  void write_row(const float* x, int32_t* words, int32_t*) const override {
    put_row_metadata_before(words, round_(x, in(), most_, reinterpret_cast<int16_t*>(words)));
  }
  void run_task(const QuantizedGemmTask& task, int64_t column) const override {
    run_task_({task, steps_.get() + column});
  }
  DotMicrokernel sums() const override { return add_panel_; }

  DotMicrokernel add_panel_;
  float (*round_)(const float*, int64_t, float, int16_t*);
  void (*run_task_)(const Int16Task&);
  float most_;
  AlignedArray<float> steps_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_int16_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                            DotMicrokernel sums) {
  return std::make_unique<Int16Gemm>(weight, bias, out, in, sums);
}

}  // namespace vitrail::kernels
#endif
