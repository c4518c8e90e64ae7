// SPDX-License-Identifier: Apache-2.0
#pragma once
// 8-bit floating-point numbers of files (Micikevicius et al. 2022, "FP8 formats for deep learning"), widened to f32.
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

enum class Float8 : uint8_t { none, e4m3fn, e5m2 };  // e4m3fn has no infinities

float widen(uint8_t bits, Float8 format);

// The bytes (u8, contiguous) as f32.
Tensor widen(const Tensor& bytes, Float8 format);

}  // namespace vitrail::weights
