// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the optimiser's and the average's loading share.
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::optim {

// Copies each of `from` into the tensor of the same name in `into`.  Missing, unexpected, repeated, misshapen and
// mistyped tensors are all_gather in one Error beginning with `where`; nothing is copied then.
void copy_by_name(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& into,
                  const std::string& where);

// Throws Error unless every tensor is contiguous, f32 or f64, has data, and a name that no other has.
void check_trainable(const std::vector<nn::NamedTensor>& tensors, const std::string& where);

}  // namespace vitrail::optim
