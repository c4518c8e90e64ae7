// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON bodies of requests.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vitrail/serve/target_internal.h"

namespace vitrail::serve {

// Throws HttpError 400 for malformed JSON, deeper nesting than max_depth, duplicate keys and more than 16 million
// values, which would take a gigabyte.
nlohmann::json parse_json(std::string_view text, int max_depth);

// The member of an object.  Throw Error naming it if it has another type; without it, the first throws too.
const nlohmann::json& member(const nlohmann::json& object, const std::string& name);
std::string text_member(const nlohmann::json& object, const std::string& name, const std::string& preset);

// Adds the members of an object but `except` as options: texts, numbers, booleans, and lists of these.
void add_options(const nlohmann::json& object, const std::string& except, RequestOptions& options);

}  // namespace vitrail::serve
