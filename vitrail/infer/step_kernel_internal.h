// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel that runs an operation of a compiled program.
#include "vitrail/infer/program.h"
#include "vitrail/kernels/gemm/convolution.h"
#include "vitrail/ops/operation.h"

namespace vitrail::infer {

StepKernel kernel_of(const kernels::PackedLinear& linear);
StepKernel kernel_of(const kernels::PackedConvolution& convolution);

// For all operations but linear layers.  attention: the precision of operations with a half_kernel.
StepKernel kernel_of(const ops::Operation& op, kernels::Precision attention);

}  // namespace vitrail::infer
