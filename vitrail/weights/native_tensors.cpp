// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/native_tensors.h"

#include <algorithm>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/mapped_tensors_internal.h"

namespace vitrail::weights {
namespace {

void check_native(const Checkpoint& checkpoint, const KeyMap& map, const MappedTensors& mapped, const std::string& name,
                  const Shape& shape) {
  const auto found = mapped.all().find(name);
  const std::string got = found == mapped.all().end()     ? "none"
                          : found->second.problem.empty() ? found->second.shape.to_string()
                                                          : found->second.problem;
  if (got != shape.to_string()) {
    throw Error(str(checkpoint.path(), ": ", name), "the model's own " + shape.to_string() + ", which int8 files need",
                got);
  }
  const KeyMatch match = map.match(name);
  if (match.native != name)
    throw Error(str(checkpoint.path(), ": ", name), "a key map that keeps native names", match.native);
}

}  // namespace

std::vector<std::string> tensors_beside(const Checkpoint& checkpoint, const KeyMap& map,
                                        const std::vector<std::pair<std::string, Shape>>& natives) {
  const MappedTensors mapped(checkpoint, map, {});
  std::set<std::string> names;
  for (const auto& [name, shape] : natives) {
    check_native(checkpoint, map, mapped, name, shape);
    for (const std::string& weight : {name, int8_correction_name(name)}) {
      names.insert(weight);
      names.insert(int8_scale_name(weight));
    }
  }
  std::vector<std::string> result;
  for (const TensorInfo& info : checkpoint.tensors()) {
    const std::vector<KeyMatch> matches = map.match_all(info.name);
    const auto replaced =
        std::ranges::count_if(matches, [&](const KeyMatch& match) { return names.contains(match.native); });
    if (replaced == 0) {
      result.push_back(info.name);
    } else if (replaced != std::ssize(matches)) {
      throw Error(str(checkpoint.path(), ": ", info.name), "all of its parts or none", str(replaced));
    }
  }
  return result;
}

}  // namespace vitrail::weights
