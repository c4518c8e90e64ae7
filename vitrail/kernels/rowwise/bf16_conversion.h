// SPDX-License-Identifier: Apache-2.0
#pragma once
// Between fp32 and bf16, bit for bit as BFloat16 converts (to nearest even; NaN stays NaN), in vectors and in parallel.
#include <cstdint>

#include "vitrail/base/dtype.h"

namespace vitrail::kernels {

void round_to_bf16(const float* x, BFloat16* y, int64_t n);
void widen_bf16(const BFloat16* x, float* y, int64_t n);

}  // namespace vitrail::kernels
