// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/hidden_activations.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"

namespace vitrail::models {

Tensor hidden_activations(const VisionTransformer& model, const Tensor& images, int64_t block) {
  const int64_t index = block < 0 ? block + model.config().depth : block;
  const std::string wanted = str(model.path(), model.path().empty() ? "" : ".", "blocks.", index, ".mlp.drop1");
  Tensor hidden;
  {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& value) {
      if (name == wanted) hidden = value;
    });
    model.intermediate(images, {.layer = block, .final_norm = false});
  }
  return hidden;
}

}  // namespace vitrail::models
