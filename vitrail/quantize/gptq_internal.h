// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPTQ (Frantar et al. 2023) of one weight matrix, with Hessians of both sides (Tseng et al. 2025, "YAQA").
#include "vitrail/tensor/tensor.h"

namespace vitrail::quantize {

// Quantises weight W [out, in] in place to Q = scale · values, with one scale per row and int8 values.  With E = W − Q
// it reduces tr(G E H Eᵀ), H [in, in] being the Hessian of the inputs and G [out, out] that of the outputs, f32 both.
// An undefined G is the identity, with which rows do not depend on each other (Frantar et al. 2023).
//
// Within a row this is GPTQ with act-order, in the form of Babai's nearest plane algorithm (Chen et al. 2025, "The
// Geometry of LLM Quantization", prove that both are the same).  Rows are rounded one after the other; each compensates
// the errors of the rows before it.
// The sum of two adjacent values stays within kernels::max_int8_pair(), the saturation limit of this processor.
void gptq_round_weight(const Tensor& weight, const Tensor& input_hessian, const Tensor& output_hessian);

}  // namespace vitrail::quantize
