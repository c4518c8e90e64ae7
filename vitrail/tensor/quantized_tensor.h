// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight matrix in int8: symmetric per-row quantisation (Jacob et al. 2018, with zero point 0 and one scale for each
// output channel), and an optional correction.
#include <memory>

#include "vitrail/tensor/tensor.h"

namespace vitrail {

// weight[r, c] = scales[r] · values[r, c] + correction[r, c].  Tensor::quantized() hands one out as a Tensor.
struct QuantizedTensor {
  Tensor values;  // i8 [out, in]
  Tensor scales;  // f32 [out]
  // The quantisation error, quantised in the same way [out, in]; null: none.  It has no correction of its own.
  std::shared_ptr<const QuantizedTensor> correction = nullptr;
};

// Throws Error when types and shapes do not belong together.
void check(const QuantizedTensor& weight);

// weight as a floating tensor, the correction included.  Errors as check().
Tensor dequantize(const QuantizedTensor& weight, DType dtype = DType::f32);

// Rows first to first + count.
QuantizedTensor rows_of(const QuantizedTensor& weight, int64_t first, int64_t count);

}  // namespace vitrail
