// SPDX-License-Identifier: Apache-2.0
// PackedLinear in bf16 (quantized_gemm_internal.h), which multiplies and adds in fp32.
#include "vitrail/base/dtype.h"
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"
#include "vitrail/kernels/rowwise/bf16_conversion.h"

namespace vitrail::kernels {
namespace {

QuantizationParams round_row(const float* x, int64_t in, float /*max_norm*/, int32_t* row) {
  round_to_bf16(x, reinterpret_cast<BFloat16*>(row), in);
  return {1.0f, 0};
}

}  // namespace

std::unique_ptr<PackedGemm> make_bf16_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                           DotMicrokernel microkernel, const PanelLayout& panel,
                                           const RowBlocking& row_blocking) {
  const QuantizedFormat format{.values_per_group = 2,
                               .panel = panel,
                               .microkernel = microkernel,
                               .quantize_row = &round_row,
                               .float_accumulators = true,
                               .row_blocking = row_blocking};
  const auto round_channel = [&](int64_t c, int32_t* groups) -> QuantizedChannel {
    return {.scale = round_row(weight + c * in, in, 0, groups).scale};
  };
  return std::make_unique<QuantizedGemm>(format, bias, out, in, round_channel);
}

}  // namespace vitrail::kernels
