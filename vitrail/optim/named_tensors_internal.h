// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers for lists of named tensors, shared by the optimisers and the EMA.
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::optim {

// Copies each tensor of `from` into the tensor of the same name in `into`.  Throws one Error, beginning with `where`,
// that lists all missing, unexpected and repeated names and all wrong shapes and dtypes, and then copies nothing.
void copy_by_name(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& into,
                  const std::string& where);

// Throws Error unless every tensor is contiguous, f32 or f64, not meta, and has a unique name.
void check_trainable(const std::vector<nn::NamedTensor>& tensors, const std::string& where);

}  // namespace vitrail::optim
