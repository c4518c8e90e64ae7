// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GEMM of the formats of 8 and 16 bits: int8, int16 and bf16.  The weight is packed in panels of 32-bit K groups
// (dot_microkernels_internal.h) with a scale per output channel.  run() quantises x per row into the scratch, then
// multiplies output blocks with exact int32 accumulators, and dequantises them in the epilogue.  For bf16, all scales
// are 1 and the accumulators are floats.
#include <functional>

#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/activation_quantization_internal.h"
#include "vitrail/kernels/gemm/dot_microkernels_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/quantized_rows_internal.h"
#include "vitrail/kernels/gemm/weight_correction_internal.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"

namespace vitrail::kernels {

struct QuantizedBlock;

struct QuantizedFormat {
  int64_t values_per_group;
  PanelLayout panel;
  DotMicrokernel microkernel;
  // x [in] → K groups.  Values of the last group beyond x are left as they are.
  QuantizationParams (*quantize_row)(const float* x, int64_t in, float max_norm, int32_t* row);
  float max_norm = 0;  // int16: max_int16_norm(in), computed once instead of per row; int8 does not use it
  // The error of the high term → K groups of the low term.  Null except for int8, which alone has zero points, two-term
  // rows and weight corrections.
  QuantizationParams (*quantize_low_term)(const float* x, int64_t in, QuantizationParams high, const int32_t* high_row,
                                          int32_t* low_row) = nullptr;
  bool float_accumulators = false;  // bf16
  RowBlocking row_blocking = {};

  int64_t k_groups(int64_t in) const {  // complete groups of interleaved ones
    const int64_t values = values_per_group * panel.interleaved_groups;
    return ceil_div(in, values) * panel.interleaved_groups;
  }
  bool is_int8() const { return quantize_low_term != nullptr; }
  Arithmetic arithmetic() const {
    if (is_int8()) return Arithmetic::int8;
    return float_accumulators ? Arithmetic::bf16 : Arithmetic::int16;
  }
};

// A row of the weight, that is an output channel.
struct QuantizedChannel {
  float scale;
  int32_t compensation = 0;  // Σ of its values: the accumulators exceed the result by zero_point · compensation
};

class QuantizedGemm : public PackedGemm {
 public:
  // quantize_channel(c, groups) writes the K groups of row c of the weight.  They are zero before.  It is called by
  // several threads at once.
  QuantizedGemm(const QuantizedFormat& format, const float* bias, int64_t out, int64_t in,
                const std::function<QuantizedChannel(int64_t, int32_t*)>& quantize_channel);

  // Replaces the microkernel by another one for the same format.
  void use(DotMicrokernel microkernel) { format_.microkernel = microkernel; }

  void run(const GemmArgs& args) const override;
  size_t scratch_bytes(const LinearRows& rows) const override;
  size_t packed_bytes() const override;
  Arithmetic arithmetic() const override { return format_.arithmetic(); }
  bool takes_correction() const override { return format_.is_int8(); }
  bool reads_rows_once() const override { return true; }

 private:
  int64_t columns() const { return panels_ * format_.panel.columns; }  // out, rounded up to complete panels
  int64_t quantized_row_stride() const {
    return kernels::quantized_row_stride(k_groups_, format_.row_blocking.alignment);
  }
  int32_t* first_row(std::byte* scratch) const {
    return reinterpret_cast<int32_t*>(scratch) + first_quantized_row(format_.row_blocking.alignment);
  }
  QuantizedRows layout_of(const LinearRows& rows) const;
  size_t quantized_bytes(const QuantizedRows& rows) const;
  void quantize_rows(const GemmArgs& args, const QuantizedRows& rows, const WeightCorrectionPass& correction,
                     std::byte* correction_scratch) const;
  void quantize_rows(const GemmArgs& args, const QuantizedRows& rows, int64_t first, int64_t last) const;

  QuantizedFormat format_;
  int64_t out_, in_, k_groups_, panels_;
  void (*multiply_block_)(const QuantizedBlock&);
  AlignedArray<int32_t> weight_;
  AlignedArray<float> bias_, scales_;
  AlignedArray<int32_t> compensation_;  // null without zero points
};

}  // namespace vitrail::kernels
