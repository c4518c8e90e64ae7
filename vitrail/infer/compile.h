// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/infer/packed_weights.h"
#include "vitrail/infer/program.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

struct CompileOptions {
  kernels::Precision attention = kernels::Precision::fp32;  // as AttentionArgs has it
  // Tokens begin with the class token, whose rows int8 keeps twice as many bits of (PackedLinear::run).  It is one of
  // 197 rows, and had half of what rounding activations cost DeiT-Tiny's logits.
  bool class_token = false;
  int64_t head_tokens = 0;  // num_head_tokens() of the model
};

// Turns a recorded forward pass into a program: fuses, packs weights, places buffers by their lifetimes.
// `input` and `outputs` are the meta tensors that the pass began and ended with.
Program compile(std::vector<ops::Operation> operations, const Tensor& input, const std::vector<Tensor>& outputs,
                PackedWeights& weights, const CompileOptions& options);

}  // namespace vitrail::infer
