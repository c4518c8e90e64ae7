// SPDX-License-Identifier: Apache-2.0
// The references of PackedLinear: what VITRAIL_CPU=scalar runs, and what tests compare the other kernels with.
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/quantized_rows_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/gemm/weight_correction_internal.h"

namespace vitrail::kernels {
namespace {

class ScalarGemm : public PackedGemm {
 public:
  ScalarGemm(const float* weight, const float* bias, int64_t out, int64_t in)
      : out_(out), in_(in), weight_(weight, weight + out * in), bias_(static_cast<size_t>(out)) {
    if (bias) std::copy_n(bias, out, bias_.begin());
  }

  void run(const GemmArgs& args) const override {
    parallel_for(0, args.rows.count, 1, [&](int64_t first, int64_t last) {
      std::vector<float> result(static_cast<size_t>(out_));
      for (int64_t r = first; r < last; ++r) {
        scalar::gemm(false, true, 1, out_, in_, args.x.data + r * args.x.ld, args.x.ld, weight_.data(), in_, false,
                     result.data(), out_);
        for (int64_t c = 0; c < out_; ++c) {
          args.y.data[r * args.y.ld + c] = scalar::epilogue(args.epilogue, result[c] + bias_[c], r, c);
        }
      }
    });
  }

  size_t scratch_bytes(const LinearRows&) const override { return 0; }
  size_t packed_bytes() const override { return (weight_.size() + bias_.size()) * sizeof(float); }
  Arithmetic arithmetic() const override { return Arithmetic::fp32; }

 private:
  int64_t out_, in_;
  std::vector<float> weight_, bias_;
};

class ScalarInt8Gemm : public PackedGemm {
 public:
  ScalarInt8Gemm(const Int8WeightSource& weight, const float* bias, int64_t out, int64_t in)
      : out_(out), in_(in), weight_(static_cast<size_t>(out * in)), bias_(static_cast<size_t>(out)) {
    if (bias) std::copy_n(bias, out, bias_.begin());
    for (int64_t c = 0; c < out; ++c) {
      scales_.push_back(weight.row(c, in, &scalar::quantize_weight_row, weight_.data() + c * in));
    }
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
        const QuantizationParams params = scalar::quantize_uint8_row(x, in_, high.data());
        const LowTermQuantizer low_term = low_term_quantizer(params);
        for (int64_t i = 0; two_terms && i < in_; ++i) low[i] = low_term_value(x[i], high[i], low_term);
        const float* const bias = row_bias.data ? biases.next() : bias_.data();
        for (int64_t c = 0; c < out_; ++c) {
          float biased = dequantized_dot(high, params, c) + bias[c];
          if (two_terms) biased += dequantized_dot(low, low_term.params, c);
          args.y.data[r * args.y.ld + c] = scalar::epilogue(args.epilogue, biased, r, c);
        }
      }
    });
  }

  size_t scratch_bytes(const LinearRows& rows) const override { return WeightCorrectionPass(rows).scratch_bytes(); }
  bool takes_correction() const override { return true; }
  size_t packed_bytes() const override { return weight_.size() + 2 * bias_.size() * sizeof(float); }
  Arithmetic arithmetic() const override { return Arithmetic::int8; }

 private:
  // A quantised row of x by column c of Wᵀ.
  float dequantized_dot(const std::vector<uint8_t>& x, QuantizationParams params, int64_t c) const {
    int32_t dot = 0;
    for (int64_t p = 0; p < in_; ++p) dot += (x[p] - params.zero_point) * weight_[c * in_ + p];
    return static_cast<float>(dot) * (params.scale * scales_[c]);
  }

  int64_t out_, in_;
  std::vector<int8_t> weight_;
  std::vector<float> bias_, scales_;
};

}  // namespace

std::unique_ptr<PackedGemm> make_scalar_gemm(const float* weight, const float* bias, int64_t out, int64_t in) {
  return std::make_unique<ScalarGemm>(weight, bias, out, in);
}
std::unique_ptr<PackedGemm> make_scalar_int8_gemm(const Int8WeightSource& weight, const float* bias, int64_t out,
                                                  int64_t in) {
  return std::make_unique<ScalarInt8Gemm>(weight, bias, out, in);
}

}  // namespace vitrail::kernels
