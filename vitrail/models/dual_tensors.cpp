// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/dual_tensors.h"

#include "vitrail/models/text_tower.h"
#include "vitrail/weights/source_tensors.h"

namespace vitrail::models {

std::vector<std::pair<std::string, Tensor>> dual_tensors(const OpenedModel& opened, const DualValues& values) {
  const weights::Checkpoint& checkpoint = *opened.checkpoint;
  std::map<std::string, Tensor> written =
      weights::source_tensors(checkpoint, opened.key_map, field_sizes(opened.config.vit), values.image);
  written.merge(weights::source_tensors(checkpoint, text_key_map(checkpoint), {}, values.text));
  const auto write = [&](const char* name, double value) {
    if (checkpoint.has(name)) written[name] = Tensor::full(checkpoint.info(name).shape, value);
  };
  write("logit_scale", values.logit_scale);
  write("logit_bias", values.logit_bias);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : checkpoint.names()) {
    const auto found = written.find(name);
    if (found != written.end())
      tensors.emplace_back(name, found->second);
    else if (!checkpoint.beside(name))
      tensors.emplace_back(name, checkpoint.tensor(name));
  }
  return tensors;
}

}  // namespace vitrail::models
