#pragma once
// Weights in 8 bits, as vitrail's own files hold them: NAME of i8 [out, in] beside NAME_scale of f32 [out].  Row r of
// the weight is scale[r] times the whole numbers of row r.
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

inline std::string int8_scale_name(const std::string& weight) { return weight + "_scale"; }

struct Int8Weight {
  Tensor numbers;  // i8 [out, in]
  Tensor scales;   // f32 [out]
};

Tensor from_int8(const Int8Weight& weight, DType dtype);  // throws Error when the shapes do not belong together

}  // namespace vitrail::weights
