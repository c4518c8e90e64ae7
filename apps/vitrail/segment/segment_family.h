// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything in the commands for all models.
#include "apps/vitrail/families/family.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::app {

// Loads or builds the model: a registered architecture has random weights (seed 0), or none on the meta device.
models::Sam segmentation_model(const NamedModel& model, Device device = Device::cpu);

// Its row of the families.
std::unique_ptr<InspectedModel> inspect_segmentation(const NamedModel& model, const ModelOptions& options,
                                                     const ValueOptions& values);
int bench_segmentation(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global);
int evaluate_segmentation(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);
int convert_segmentation(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
