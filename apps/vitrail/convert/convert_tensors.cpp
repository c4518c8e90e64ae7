// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert/convert_tensors.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/weights/finite_check_internal.h"

namespace vitrail::app {

NamedTensors parameters_of(const nn::Module& model) {
  NamedTensors tensors;
  for (const nn::NamedTensor& parameter : model.named_parameters())
    tensors.emplace_back(parameter.name, parameter.tensor);
  return tensors;
}

NamedTensors tensors_of(const weights::Checkpoint& checkpoint) {
  NamedTensors tensors;
  for (const weights::TensorInfo& info : checkpoint.tensors()) {
    const bool of_model = !checkpoint.beside(info.name) && info.unsupported_dtype.empty();
    if (of_model) tensors.emplace_back(info.name, checkpoint.tensor(info.name));
  }
  return tensors;
}

NamedTensors tensors_as(const NamedTensors& tensors, DType dtype) {
  NamedTensors result;
  std::vector<std::string> kept;
  for (const auto& [name, tensor] : tensors) {
    const bool converts = is_floating(tensor.dtype()) && tensor.numel() != 1;
    const Tensor converted = converts ? tensor.to(dtype).contiguous() : tensor;
    const bool fits = !converts || !weights::first_non_finite(converted);
    if (!fits) kept.push_back(name);
    result.emplace_back(name, fits ? converted : tensor);
  }
  if (!kept.empty()) {
    warn(str(kept.size(), kept.size() == 1 ? " tensor" : " tensors", " kept in fp32, with values beyond the range of ",
             dtype == DType::f16 ? "fp16 (65504)" : name_of(dtype), ": ", join(kept)));
  }
  return result;
}

}  // namespace vitrail::app
