// SPDX-License-Identifier: Apache-2.0
// PackedLinear in int16 by AVX-512 VNNI (quantized_gemm_internal.h): symmetric, with a scale for each row of x and of
// the weight (int16_quantization_internal.h).  vpdpwssd takes about as long as vdpbf16ps, and a value keeps up to 15
// bits where bf16 keeps 8.
#include "vitrail/kernels/gemm/int16_quantization_internal.h"
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/gemm/int16_gemm.cpp"
#include "vitrail/kernels/isa/highway-inl.h"
// After highway-inl.h: what is compiled for each target.
#include "vitrail/kernels/gemm/int16_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels {
namespace HWY_NAMESPACE {

QuantizationParams quantize_int16_groups(const float* x, int64_t in, float max_norm, int32_t* row) {
  return {quantize_int16_row(x, in, max_norm, reinterpret_cast<int16_t*>(row)), 0};
}

}  // namespace HWY_NAMESPACE
}  // namespace vitrail::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

VITRAIL_EXPORT(quantize_int16_groups, nullptr);

}  // namespace

std::unique_ptr<PackedGemm> make_int16_gemm(const float* weight, const float* bias, int64_t out, int64_t in,
                                            DotMicrokernel microkernel) {
  auto* const quantize_row = &VITRAIL_DISPATCH(quantize_int16_groups);
  const float max_norm = max_int16_norm(in);
  const QuantizedFormat format{.values_per_group = 2,
                               .panel = {kAvx512Columns},
                               .microkernel = microkernel,
                               .quantize_row = quantize_row,
                               .max_norm = max_norm};
  const auto quantize_channel = [&](int64_t c, int32_t* groups) -> QuantizedChannel {
    return {.scale = quantize_row(weight + c * in, in, max_norm, groups).scale};
  };
  return std::make_unique<QuantizedGemm>(format, bias, out, in, quantize_channel);
}

}  // namespace vitrail::kernels
#endif
