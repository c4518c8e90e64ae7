// SPDX-License-Identifier: Apache-2.0
// The reference of PackedLinear in 8 bits (int8_gemm.cpp): the same whole numbers, one loop after another.
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/quantized_gemm_tasks_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/gemm/weight_correction_internal.h"

namespace vitrail::kernels {
namespace {

class ScalarInt8Gemm : public PackedGemm {
 public:
  ScalarInt8Gemm(const Int8Rows& weight, const float* bias, int64_t out, int64_t in)
      : out_(out), in_(in), weight_(static_cast<size_t>(out * in)), bias_(static_cast<size_t>(out)) {
    if (bias) std::copy_n(bias, out, bias_.begin());
    for (int64_t c = 0; c < out; ++c)
      scales_.push_back(weight.take(c, in, &scalar::quantize_weight_row, weight_.data() + c * in));
  }

  void run(const GemmArgs& args) const override {
    const WeightCorrectionPass correction(args.rows);
    for (int64_t c = 0; correction.enabled() && c < correction.num_chunks(); ++c) {
      correction.accumulate(args.x, c, correction.chunk(c), args.scratch);
    }
    const RowBias row_bias = correction.row_biases(args.x, args.scratch);
    parallel_for(0, args.rows.count, 1, [&](int64_t first, int64_t last) {
      std::vector<uint8_t> high(static_cast<size_t>(in_)), low(static_cast<size_t>(in_));
      RowBiasIterator biases(row_bias, first);
      for (int64_t r = first; r < last; ++r) {
        const float* const x = args.x.data + r * args.x.ld;
        const bool two_terms = contains(args.rows.two_term, r);
        const QuantizationParams grid = scalar::quantize(x, in_, high.data());
        const LowTermQuantizer steps = low_term_quantizer(grid);
        for (int64_t i = 0; two_terms && i < in_; ++i) low[i] = low_term_value(x[i], high[i], steps);
        const float* const bias = row_bias.data ? biases.next() : bias_.data();
        for (int64_t c = 0; c < out_; ++c) {
          float biased = scaled_sum(high, grid, c) + bias[c];
          if (two_terms) biased += scaled_sum(low, steps.grid, c);
          args.y.data[r * args.y.ld + c] = scalar::epilogue(args.epilogue, biased, r, c);
        }
      }
    });
  }

  size_t scratch_bytes(const LinearRows& rows) const override { return WeightCorrectionPass(rows).scratch_bytes(); }
  bool takes_correction() const override { return true; }
  size_t packed_bytes() const override { return weight_.size() + 2 * bias_.size() * sizeof(float); }

 private:
  float scaled_sum(const std::vector<uint8_t>& bytes, QuantizationParams grid, int64_t c) const {
    int32_t sum = 0;
    for (int64_t p = 0; p < in_; ++p) sum += (bytes[p] - grid.zero) * weight_[c * in_ + p];
    return static_cast<float>(sum) * (grid.scale * scales_[c]);
  }

  int64_t out_, in_;
  std::vector<int8_t> weight_;
  std::vector<float> bias_, scales_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_scalar_int8_gemm(const Int8Rows& weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<ScalarInt8Gemm>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
