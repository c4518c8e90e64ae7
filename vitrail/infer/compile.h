// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/infer/packed_weights.h"
#include "vitrail/infer/program.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

struct CompileOptions {
  kernels::Precision attention = kernels::Precision::fp32;  // as AttentionArgs has it
};

// Turns a recorded forward pass into a program: fuses, packs weights, places buffers by their lifetimes.
// `inputs` and `outputs` are the meta tensors that the pass began and ended with.
Program compile(const ops::Recorder& recorder, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                PackedWeights& weights, const CompileOptions& options);

}  // namespace vitrail::infer
