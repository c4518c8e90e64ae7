// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversions between fp32 and bf16, bit for bit as BFloat16 converts: to nearest, ties to even; NaN stays NaN.
#include <cstdint>

#include "vitrail/base/dtype.h"

namespace vitrail::kernels {

void round_to_bf16(const float* x, BFloat16* y, int64_t n);
void widen_bf16(const BFloat16* x, float* y, int64_t n);

}  // namespace vitrail::kernels
