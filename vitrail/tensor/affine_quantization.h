// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "vitrail/base/dtype.h"

namespace vitrail {

// Uniform affine quantisation of a whole tensor (Jacob et al. 2018, "Quantization and Training of Neural Networks for
// Efficient Integer-Arithmetic-Only Inference", eq. 1): x ≈ scale · (q − zero_point).
struct AffineQuantization {
  DType dtype = DType::i8;  // i8 or u8, the type of q
  float scale = 1;          // positive
  int32_t zero_point = 0;   // a value of that type
};

}  // namespace vitrail
