// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/objective.h"

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/classification/classification_internal.h"
#include "vitrail/train/objectives/probe/probe_internal.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

template <class Made>
std::unique_ptr<Objective> make(const ObjectiveContext& context) {
  return std::make_unique<Made>(context);
}

}  // namespace

const ObjectiveRow& find_objective(const std::string& name) {
  static const ObjectiveRow kObjectives[] = {
      {.name = "classify", .make = make<Classification>},
      {.name = "probe", .make = make<Probe>, .several_processes = false, .solves = true},
      {.name = "segment", .make = make<Segmentation>, .several_processes = false},
  };
  for (const ObjectiveRow& row : kObjectives) {
    if (row.name == name) return row;
  }
  throw Error("objective", "a name of the table", "\"" + name + "\"");
}

std::string Objective::model_card(const ReportInput& input) const {
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str("---\nlibrary_name: vitrail\n---\n# ", input.subject, "\n\nTrained on ", input.images.training,
             " images of `", input.recipe->data.train, "`.\n\n## Results\n\n",
             results.empty() ? "No images were held out.\n" : results);
}

}  // namespace vitrail::train
