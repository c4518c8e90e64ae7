// SPDX-License-Identifier: Apache-2.0
#pragma once
// inspect --tree and --keys: modules, parameters and the tensors of a weights file.
#include "vitrail/nn/module.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::app {

// The module tree in PyTorch's format, then the parameter count of each module.
void print_tree(const nn::Module& model);

void print_parameters(const nn::Module& model);

// The tensors of the weights file under their own keys, before the key map applies.
void print_keys(const weights::Checkpoint& checkpoint);

}  // namespace vitrail::app
