// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the pages of all families have in common.
#include <nlohmann/json.hpp>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/explain.h"

namespace vitrail::explain {

// The manifest's members about the page: the format, the version, the language and the detail.
nlohmann::ordered_json page_manifest(const ExplainOptions& options);

// An image's members: name, width, height, sha256 of its pixels, and thumbnail, whose longer side has at most
// `thumbnail` pixels.
nlohmann::ordered_json image_json(const image::Image& photo, const std::string& name, int64_t thumbnail = 512);

// Completes the manifest and writes the page, whose left_out is known.  derived: the errors of derived values.
void finish_page(const std::string& title, nlohmann::ordered_json& manifest, const nlohmann::ordered_json& claims,
                 const nlohmann::ordered_json& derived, const Arrays& arrays, LearningPage& page);

}  // namespace vitrail::explain
