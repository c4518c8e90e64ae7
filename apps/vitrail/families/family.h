// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of models, in the commands that take a model of any: each is a row of functions.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apps/vitrail/bench/bench_options.h"
#include "apps/vitrail/convert/convert_options.h"
#include "apps/vitrail/eval/eval_options.h"
#include "apps/vitrail/inspect/inspect_values.h"

namespace vitrail::app {

// A model as a command names it, opened once.
struct NamedModel {
  std::string name;
  std::optional<models::ModelFiles> files;  // none: a registered architecture or a config.json, without weights
};

// With its files, unless is_configuration(name).  Throws Error for files that cannot be opened.
NamedModel open_named(const std::string& name);

struct ModelFamily {
  std::string_view name;  // that of tasks::Family
  // Each throws CLI::ValidationError for options that the family does not have.
  std::unique_ptr<InspectedModel> (*inspect)(const NamedModel& model, const ModelOptions& options,
                                             const ValueOptions& values);
  int (*bench)(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global);
  int (*evaluate)(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);
  int (*convert)(const NamedModel& model, const ConvertCommandOptions& options, const GlobalOptions& global);
};

const ModelFamily& family_of(const NamedModel& model);

// Whether the text names a configuration instead of weights: a registered architecture or a JSON file.
bool is_configuration(const std::string& text);

}  // namespace vitrail::app
