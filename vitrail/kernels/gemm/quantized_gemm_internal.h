// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the products in 8 and 16 bits share: the weight is packed in panels of words (dot_microkernels_internal.h), x is
// written as words into the scratch first, and tasks (quantized_gemm_tasks_internal.h) multiply and finish.
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/quantized_gemm_tasks_internal.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"

namespace vitrail::kernels {

class QuantizedGemm : public PackedGemm {
 public:
  void run(const GemmArgs& args) const override;
  size_t scratch_bytes(const LinearRows& rows) const override;

 protected:
  struct Layout {
    int64_t numbers;     // of a word
    int64_t width;       // columns of a panel
    int64_t heading;     // words before those of a row of x, for write_row() to use
    bool two_term_rows;  // LinearRows::two_term is supported
  };
  // The weight's panels are zeros, for the constructor to fill.
  QuantizedGemm(const float* bias, int64_t out, int64_t in, const Layout& layout);

  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  int64_t words() const { return words_; }
  int64_t width() const { return layout_.width; }
  int64_t columns() const { return panels_ * width(); }  // out, and what fills the last panel
  int32_t* panel(int64_t p) { return weight_.get() + p * width() * words_; }

 private:
  // x [in] → words; unless null, rest: what the words leave of it, of fine rows.  The last word, which x may not fill,
  // is 0.
  virtual void write_row(const float* x, int32_t* words, int32_t* rest) const = 0;
  virtual void run_task(const QuantizedGemmTask& task, int64_t column) const = 0;  // from this column of the weight on
  virtual DotMicrokernel sums() const = 0;

  QuantizedRows layout_of(const LinearRows& rows) const;
  size_t quantized_bytes(const QuantizedRows& rows) const;
  void quantize_rows(const GemmArgs& args, const QuantizedRows& rows, const WeightCorrectionPass& correction,
                     std::byte* correction_scratch) const;
  void quantize_rows(const GemmArgs& args, const QuantizedRows& rows, int64_t first, int64_t last) const;

  Layout layout_;
  int64_t out_, in_, words_, panels_;
  AlignedArray<int32_t> weight_;
  AlignedArray<float> bias_;
};

}  // namespace vitrail::kernels
