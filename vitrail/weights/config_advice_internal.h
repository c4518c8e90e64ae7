// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fields of config.json that add parameters to a Vision Transformer, for errors about tensors that it lacks.
#include <set>
#include <string>
#include <vector>

#include "vitrail/weights/rule_proposals_internal.h"

namespace vitrail::weights {

// Whether this is the name of a parameter that a Vision Transformer of some configuration has.
bool is_parameter(const std::string& name);

// A line for each field of model_args with which the model, whose parameters are `expected`, would have tensors of a
// file: `fc_norm.weight: "global_pool": "avg"`.  missing: parameters that the file lacks; extra: tensors of the file
// that the model lacks, under their native names.  Nothing for other models than Vision Transformers.
std::vector<std::string> advise_fields(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra,
                                       const std::set<std::string>& expected);

}  // namespace vitrail::weights
