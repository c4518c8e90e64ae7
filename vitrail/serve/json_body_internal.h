// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON bodies of requests.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vitrail/serve/target_internal.h"

namespace vitrail::serve {

// What JSON may take.  A small body can name values that need much memory.
struct ParseBudget {
  size_t bytes = size_t{192} << 20;                // its values may take: 413
  std::function<void(size_t bytes)> reserve = {};  // called before the values are made; may throw
  std::function<void()> check = {};                // called from time to time; may throw, such as Departed
};

// Throws HttpError 400 for malformed JSON, deeper nesting than max_depth and duplicate keys, 413 beyond the budget.
nlohmann::json parse_json(std::string_view text, int max_depth, const ParseBudget& budget = {});

// The member of an object.  Throw Error naming it if it has another type; without it, the first throws too.
const nlohmann::json& member(const nlohmann::json& object, const std::string& name);
std::string text_member(const nlohmann::json& object, const std::string& name, const std::string& preset);

// The bytes of an image: base64 or a data URI, also as OpenAI's clients send it: {"url": …}, {"image_url": …}.  Throws
// Error naming `where`.
std::string image_bytes(const nlohmann::json& value, const std::string& where);

// Adds the members of an object but `except` as options: texts, numbers, booleans, and lists of these.
void add_options(const nlohmann::json& object, const std::string& except, RequestOptions& options);

}  // namespace vitrail::serve
