#pragma once
#include <vector>

#include "vitrail/infer/packed_weights.h"
#include "vitrail/infer/program.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

// Turns a recorded forward pass into a program: fuses, packs weights, places buffers by their lifetimes.
// `input` and `outputs` are the meta tensors that the pass began and ended with; `attention` as AttentionArgs has it.
Program compile(std::vector<ops::Operation> operations, const Tensor& input, const std::vector<Tensor>& outputs,
                PackedWeights& weights, kernels::Precision attention);

}  // namespace vitrail::infer
