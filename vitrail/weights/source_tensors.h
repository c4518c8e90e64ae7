// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::weights {

// The inverse of reading a checkpoint under a key map: the tensors of the checkpoint that native ones are made of, by
// their names in the file, f32, with the values of `native(name)`.  Those whose native tensor is undefined are left
// out. sizes: fields of the configuration that the map's rules name.  Throws Error for a native tensor of another
// shape, and for a rule whose layout cannot be written back.
std::map<std::string, Tensor> source_tensors(const Checkpoint& checkpoint, const KeyMap& map,
                                             const std::map<std::string, int64_t>& sizes,
                                             const std::function<Tensor(const std::string&)>& native);

}  // namespace vitrail::weights
