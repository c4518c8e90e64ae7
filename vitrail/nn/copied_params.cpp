// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/copied_params.h"

#include "vitrail/base/error.h"

namespace vitrail::nn {

CopiedParams::CopiedParams(const Module& module, const std::map<std::string, Tensor>& replaced) {
  for (const NamedTensor& parameter : module.named_parameters()) tensors_[parameter.name] = parameter.tensor;
  for (const auto& [name, tensor] : replaced) tensors_.at(name) = tensor;
}

Tensor CopiedParams::get(const std::string& path, const Shape& shape, const Initializer&) {
  const Tensor& tensor = tensors_.at(path);
  if (!(tensor.shape() == shape)) throw Error(path, shape.to_string(), tensor.shape().to_string());
  return tensor.clone();
}

}  // namespace vitrail::nn
