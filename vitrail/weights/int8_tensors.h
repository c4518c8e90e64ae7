// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights in 8 bits, as vitrail's own files hold them: NAME of i8 [out, in] beside NAME_scale of f32 [out].  Row r of
// the weight is scale[r] times the whole numbers of row r.
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

inline std::string int8_scale_name(const std::string& weight) { return weight + "_scale"; }
// What rounding has left, in the same way: NAME_rest of i8 beside NAME_rest_scale.
inline std::string int8_correction_name(const std::string& weight) { return weight + "_rest"; }

struct Int8Weight {
  Tensor numbers;  // i8 [out, in]
  Tensor scales;   // f32 [out]
};

void check_int8(const Int8Weight& weight);                // throws Error when types and shapes do not belong together
Tensor from_int8(const Int8Weight& weight, DType dtype);  // checked so

// What such a file keeps of a layer that is not in 8 bits: f16, or bf16 where that is nearer (numbers that are too
// large or too small for f16, which has three bits more).
Tensor in_16_bits(const Tensor& weight);

}  // namespace vitrail::weights
