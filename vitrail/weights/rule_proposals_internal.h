// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rules of key maps that nearly fit, for errors about tensor names that no key map knows.
#include <string>
#include <vector>

#include "vitrail/tensor/shape.h"

namespace vitrail::weights {

struct NamedShape {
  std::string name;
  Shape shape;
};

// Rules in JSON that map tensors of a file, `extra`, to the parameters that a model misses: pairs of the same shape and
// with similar names, or the three parts of a fused qkv.  Numbers between dots stand for all such numbers, and the
// rules give exactly the names that are missing.  If nothing is missing, rules that drop the tensors, but none of a
// layer. There is no rule for the name of a parameter (config_advice_internal.h).  At most 24 rules; none where
// advise_merging() has advice.
std::vector<std::string> propose_rules(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra);

// For weights that a file has in parts (pruned, weight-normalised, with LoRA, flat, quantised), which no rule can
// merge: a line per kind with an example and how PyTorch or PEFT saves the weights themselves.
std::vector<std::string> advise_merging(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra);

}  // namespace vitrail::weights
