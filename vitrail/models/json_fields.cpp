// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/json_fields_internal.h"

#include <array>

#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"

namespace vitrail::models {
namespace {

[[noreturn]] void fail(const std::string& path, const char* expected, const Json& got) {
  std::string text = got.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  throw Error(path, expected, text);
}

}  // namespace

Json parse_json(const std::string& text, const std::string& where) {
  // Parsing does not recurse, but destroying a deeply nested value would overflow the stack.
  if (json_depth(text) > 200) throw Error(where, "at most 200 levels of nesting", "more");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(where, "JSON", json_fault(text, error));
  }
}

JsonFields::JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) fail(where_, "a JSON object", object);
}

bool JsonFields::has(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

JsonFields JsonFields::nested(const char* key) const {
  static const Json kEmpty = Json::object();
  return {has(key) ? at(key) : kEmpty, path(key)};
}

std::optional<int64_t> JsonFields::integer(const char* key) const {
  if (!has(key)) return std::nullopt;
  const auto value = integer_of(at(key));
  if (!value) fail(path(key), "an integer", at(key));
  return value;
}

std::optional<double> JsonFields::number(const char* key) const {
  if (!has(key)) return std::nullopt;
  if (!at(key).is_number()) fail(path(key), "a number", at(key));
  return at(key).get<double>();
}

std::optional<bool> JsonFields::boolean(const char* key) const {
  if (!has(key)) return std::nullopt;
  if (!at(key).is_boolean()) fail(path(key), "true or false", at(key));
  return at(key).get<bool>();
}

std::optional<std::string> JsonFields::text(const char* key) const {
  if (!has(key)) return std::nullopt;
  if (!at(key).is_string()) fail(path(key), "a string", at(key));
  return at(key).get<std::string>();
}

std::optional<std::vector<double>> JsonFields::numbers(const char* key) const {
  if (!has(key)) return std::nullopt;
  const Json& value = at(key);
  std::vector<double> result;
  if (!value.is_array()) fail(path(key), "an array of numbers", value);
  for (const Json& item : value) {
    if (!item.is_number()) fail(path(key), "an array of numbers", value);
    result.push_back(item.get<double>());
  }
  return result;
}

std::optional<std::vector<int64_t>> JsonFields::integers(const char* key) const {
  if (!has(key)) return std::nullopt;
  const Json& value = at(key);
  std::vector<int64_t> result;
  if (!value.is_array()) fail(path(key), "an array of integers", value);
  for (const Json& item : value) {
    const auto number = integer_of(item);
    if (!number) fail(path(key), "an array of integers", value);
    result.push_back(*number);
  }
  return result;
}

std::optional<std::array<int64_t, 2>> JsonFields::size(const char* key) const {
  if (!has(key)) return std::nullopt;
  const Json& value = at(key);
  if (const auto side = integer_of(value)) return std::array<int64_t, 2>{*side, *side};
  if (value.is_array() && value.size() == 2) {
    const auto height = integer_of(value[0]), width = integer_of(value[1]);
    if (height && width) return std::array<int64_t, 2>{*height, *width};
  }
  fail(path(key), "an integer or [height, width]", value);
}

std::vector<std::string> texts(const JsonFields& fields, const char* key) {
  std::vector<std::string> texts;
  if (!fields.has(key)) return texts;
  const Json& value = fields.at(key);
  if (!value.is_array()) throw Error(fields.path(key), "an array of strings", value.type_name());
  for (const Json& item : value) {
    if (!item.is_string()) throw Error(fields.path(key), "an array of strings", item.type_name());
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

void require_defaults(const JsonFields& fields, std::initializer_list<std::pair<const char*, Json>> defaults) {
  for (const auto& [name, value] : defaults) {
    if (fields.has(name) && fields.at(name) != value)
      throw Error(fields.path(name), value.dump(), fields.at(name).dump());
  }
}

}  // namespace vitrail::models
