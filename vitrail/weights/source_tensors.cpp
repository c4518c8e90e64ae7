// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/source_tensors.h"

#include "vitrail/base/error.h"
#include "vitrail/weights/mapped_tensors_internal.h"

namespace vitrail::weights {

std::map<std::string, Tensor> source_tensors(const Checkpoint& checkpoint, const KeyMap& map,
                                             const std::map<std::string, int64_t>& sizes,
                                             const std::function<Tensor(const std::string&)>& native) {
  const MappedTensors mapped(checkpoint, map, sizes);
  std::map<std::string, Tensor> sources;
  for (const auto& [name, tensor] : mapped.all()) {
    if (tensor.object || !tensor.problem.empty()) continue;
    const Tensor values = native(name);
    if (!values.defined()) continue;
    if (!(values.shape() == tensor.shape)) throw Error(name, tensor.shape.to_string(), values.shape().to_string());
    mapped.write(checkpoint, tensor, values, sources);
  }
  return sources;
}

}  // namespace vitrail::weights
