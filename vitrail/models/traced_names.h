// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names of traced values (nn/trace.h) in the module trees of other libraries.
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::models {

// A traced value, or one of `parts` equal parts of its last axis: Hugging Face's "query" is the first third of "qkv".
struct TracedName {
  std::string name;
  int64_t part = 0, parts = 1;
  Tensor of(const Tensor& value) const;
};

// What `name` can mean: itself, the module of that name in the family of `own` (may be null), or in a built-in family.
// The first that a trace has is meant.
std::vector<TracedName> traced_names(const std::string& name, const weights::KeyMap* own = nullptr);

}  // namespace vitrail::models
