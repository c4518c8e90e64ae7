// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that run by their task, in the commands for all models: what tasks::Network tells is enough.
#include "apps/vitrail/families/family.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::app {

// Throws Error for a model without a network.
tasks::Network network_of(const tasks::LoadedModel& model, const std::string& name);

// A row of the families.
std::unique_ptr<InspectedModel> inspect_network(const NamedModel& model, const ModelOptions& options,
                                                const ValueOptions& values);
int bench_network(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global);
int evaluate_network(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);
int convert_network(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
