// SPDX-License-Identifier: Apache-2.0
#pragma once
// Semantic segmenters in the commands for all models.
#include "apps/vitrail/families/family.h"

namespace vitrail::app {

// Its row of the families.
std::unique_ptr<InspectedModel> inspect_label_map_model(const NamedModel& model, const ModelOptions& options,
                                                        const ValueOptions& values);
int bench_label_map_model(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global);
// On a data::LabelMapSet or a data::PanopticSet, for every model whose result is a label map.
int evaluate_label_maps(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);
int convert_label_map_model(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
