// SPDX-License-Identifier: Apache-2.0
#pragma once
// What to do about tensors that do not fit a model, for errors.
#include <set>
#include <string>
#include <vector>

#include "vitrail/tensor/shape.h"

namespace vitrail::weights {

struct NamedShape {
  std::string name;
  Shape shape;
};

// A line for each parameter that a file lacks: "head.weight [5, 4]; did you mean head.1.weight?", if a tensor of the
// file that the model lacks has this shape and nearly this name.
std::vector<std::string> describe_missing(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra);

// A line for each field of model_args that adds tensors of a file to a Vision Transformer: `blocks.0.ls1.gamma:
// "init_values": 1e-5`.  extra: tensors that the model lacks, under their native names; expected: its parameters.
std::vector<std::string> advise_fields(const std::vector<NamedShape>& extra, const std::set<std::string>& expected);

// The line for weights of an MLP with a gate, whose first layer makes twice the inputs of the second; empty if they are
// none.  fc2: the native name and the file's shape of the second weight, which is not `expected`.
std::string advise_gate(const NamedShape& fc2, const Shape& expected, const Shape& fc1);

// For weights that a file has in parts (pruned, weight-normalised, with LoRA, flat, quantised): a line per kind with an
// example and how PyTorch or PEFT saves the weights themselves.  names: tensors that the model lacks; is_any_missing:
// whether it misses some in turn, else only LoRA's updates change it.
std::vector<std::string> advise_merging(const std::vector<std::string>& names, bool is_any_missing);

}  // namespace vitrail::weights
