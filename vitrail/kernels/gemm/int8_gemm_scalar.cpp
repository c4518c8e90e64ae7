// SPDX-License-Identifier: Apache-2.0
// The reference of PackedLinear in 8 bits (int8_gemm.cpp): the same whole numbers, one loop after another.
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/weight_correction.h"
#include "vitrail/kernels/isa/scalar_internal.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

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
    for (int64_t p = 0; args.rest && p < args.rest->parts(); ++p) {
      const WeightCorrection::Part part = args.rest->part(p);
      args.rest->sum_up(args.x, args.ldx, p, part.first, part.last, args.correction_scratch);
    }
    const RowBias row_bias = args.rest ? args.rest->biases(args.x, args.ldx, args.correction_scratch) : RowBias{};
    parallel_for(0, args.rows, 1, [&](int64_t first, int64_t last) {
      std::vector<uint8_t> bytes(static_cast<size_t>(in_)), rest(static_cast<size_t>(in_));
      RowBiases biases(row_bias, first);
      for (int64_t r = first; r < last; ++r) {
        const float* const x = args.x + r * args.ldx;
        const bool fine = args.two_term_every > 0 && r % args.two_term_every == 0;
        const QuantizationParams grid = scalar::quantize(x, in_, bytes.data());
        const LowTermQuantizer steps = low_term_quantizer(grid);
        for (int64_t i = 0; fine && i < in_; ++i) rest[i] = low_term_value(x[i], bytes[i], steps);
        const float* const bias = row_bias.data ? biases.next() : bias_.data();
        for (int64_t c = 0; c < out_; ++c) {
          float biased = scaled_sum(bytes, grid, c) + bias[c];
          if (fine) biased += scaled_sum(rest, steps.grid, c);
          float value = scalar::activate(args.activation, biased);
          if (args.residual.scale) value *= args.residual.scale[c];
          if (args.residual.data) value += args.residual.data[r * args.residual.ld + c];
          args.y[r * args.ldy + c] = value;
        }
      }
    });
  }

  void prepare(int64_t, int64_t, int64_t, Activation) const override {}
  size_t scratch_bytes(int64_t, int64_t) const override { return 0; }
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
