// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/model_facts_internal.h"

namespace vitrail::tasks {

std::string facts_json(const ModelFacts& facts) {
  nlohmann::ordered_json json{{"architecture", facts.architecture}, {"image_size", facts.image_size}};
  if (facts.depth > 0) {
    json.update({{"depth", facts.depth},
                 {"heads", facts.heads},
                 {"dim", facts.dim},
                 {"classes", facts.classes},
                 {"texts", facts.texts}});
  }
  json["segments"] = facts.segments;
  json["precision"] = kernels::name_of(facts.precision);
  return pipeline::json_line(json);
}

}  // namespace vitrail::tasks
