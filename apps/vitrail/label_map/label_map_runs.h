// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the evaluations of label maps share.
#include <functional>

#include "apps/vitrail/families/family.h"
#include "vitrail/tasks/label_map/label_map_model.h"

namespace vitrail::app {

// The splits of a set that are evaluated: the first one that it has.
std::vector<std::string> wanted_splits(const EvalCommandOptions& options);

// Calls `use` with the map of each image, in order.  Returns how many failed, and throws Error if all did.
size_t run_label_maps(const tasks::LabelMapModel& model, tasks::LabelMapTask task,
                      const std::vector<std::string>& paths, const EvalCommandOptions& options,
                      const GlobalOptions& global,
                      const std::function<void(size_t index, const tasks::LabelMap& map)>& use);

// Prints the panoptic quality of a model on a data::PanopticSet.
int evaluate_panoptic_set(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
