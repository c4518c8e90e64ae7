// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/json_body_internal.h"

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

using nlohmann::json;

std::string option_value(const std::string& name, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  throw Error(name, "a text, a number, true or false", value.type_name());
}

}  // namespace

json parse_json(std::string_view text, int max_depth, const ParseBudget& budget) {
  if (json_depth(text) > max_depth) {
    throw HttpError(400, str("JSON that is nested more than ", max_depth, " levels deep"));
  }
  const JsonContent content = json_content(text, {.bytes = budget.bytes, .check = budget.check});
  if (content.bytes > budget.bytes)
    throw HttpError(413, str("JSON whose values need more than ", budget.bytes, " bytes of memory"));
  if (content.repeated_key) {
    const std::string key = json(*content.repeated_key).dump(-1, ' ', true, json::error_handler_t::replace);
    throw HttpError(400, "JSON with a duplicate key: " + key);
  }
  if (budget.reserve) budget.reserve(content.bytes);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw HttpError(400, str("malformed JSON at byte ", error.byte));
  } catch (const json::exception&) {
    throw HttpError(400, "malformed JSON: a number that is out of range");
  }
}

const json& member(const json& object, const std::string& name) {
  if (!object.is_object()) throw Error("body", "a JSON object", object.type_name());
  const auto found = object.find(name);
  if (found == object.end()) throw Error("body", "the member \"" + name + "\"", "none");
  return *found;
}

std::string text_member(const json& object, const std::string& name, const std::string& preset) {
  if (!object.is_object()) throw Error("body", "a JSON object", object.type_name());
  const auto found = object.find(name);
  if (found == object.end()) return preset;
  if (!found->is_string()) throw Error(name, "a text", found->type_name());
  return found->get<std::string>();
}

std::string image_bytes(const json& value, const std::string& where) {
  for (const char* name : {"image_url", "url"}) {
    if (const auto found = value.is_object() ? value.find(name) : value.end(); found != value.end())
      return image_bytes(*found, where);
  }
  if (!value.is_string()) throw Error(where, "a data URI", value.type_name());
  return from_base64_or_uri(value.get_ref<const std::string&>(), where);
}

void add_options(const json& object, const std::string& except, RequestOptions& options) {
  for (const auto& [name, value] : object.items()) {
    if (name == except) continue;
    if (!value.is_array()) {
      options.add(name, option_value(name, value));
      continue;
    }
    for (const json& element : value) options.add(name, option_value(name, element));
  }
}

}  // namespace vitrail::serve
