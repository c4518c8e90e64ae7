// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "vitrail/explain/arrays_internal.h"

namespace vitrail::explain {

// The file: the frame of page/, with its style, script, texts and data.  title: plain text.
std::string page_html(const std::string& title, const nlohmann::ordered_json& manifest, const Arrays& arrays);

}  // namespace vitrail::explain
