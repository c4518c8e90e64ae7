// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the pages of all families have in common.
#include <nlohmann/json.hpp>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/explain.h"

namespace vitrail::explain {

// The manifest's members about the page and the image.
nlohmann::ordered_json common_manifest(const ExplainOptions& options, const image::Image& photo,
                                       const std::string& name);

// Completes the manifest and writes the page, whose left_out is known.  derived: the errors of derived values.
void finish_page(nlohmann::ordered_json& manifest, const nlohmann::ordered_json& claims,
                 const nlohmann::ordered_json& derived, const Arrays& arrays, LearningPage& page);

}  // namespace vitrail::explain
