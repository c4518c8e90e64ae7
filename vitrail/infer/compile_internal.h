// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/infer/packed_weights_internal.h"
#include "vitrail/infer/program.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

struct CompileOptions {
  kernels::Precision attention = kernels::Precision::fp32;  // as in kernels::AttentionArgs
};

// Compiles a recorded forward pass: fuses operations, packs weights, plans memory and emits the steps.
// `inputs` and `outputs` are the meta tensors that the pass started from and ended with.  Throws Error for an output
// that is not contiguous f32, or that no operation computes.
Program compile(const ops::Recorder& recorder, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                PackedWeights& weights, const CompileOptions& options);

}  // namespace vitrail::infer
