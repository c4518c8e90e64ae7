// SPDX-License-Identifier: Apache-2.0
#pragma once
// Banks of anomaly detection in the commands for all models.
#include "apps/vitrail/families/family.h"

namespace vitrail::app {

// Its row of the families.
std::unique_ptr<InspectedModel> inspect_bank(const NamedModel& model, const ModelOptions& options,
                                             const ValueOptions& values);
int bench_bank(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global);
int evaluate_bank(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);
int convert_bank(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
