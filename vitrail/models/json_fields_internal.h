// SPDX-License-Identifier: Apache-2.0
#pragma once
// Typed access to a JSON object, with errors that name the path of the field.
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/base/fields_json_internal.h"

namespace vitrail::models {

using Json = nlohmann::ordered_json;

// Parses JSON.  Throws Error naming `where` and the position of a syntax error.
Json parse_json(const std::string& text, const std::string& where);

// A JSON object of a file.  A field with the value null counts as absent.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string where);  // throws Error if it is not an object

  bool has(const char* key) const;
  const Json& at(const char* key) const { return object_.at(key); }
  Json at_or_null(const char* key) const { return has(key) ? at(key) : Json(); }
  JsonFields nested(const char* key) const;  // the object at `key`, an empty one if it is absent
  std::string path(const std::string& key) const { return where_ + ": " + key; }
  const Json& object() const { return object_; }
  const std::string& where() const { return where_; }

  // Each returns the field's value, none if it is absent, and throws Error naming its path if the type is wrong.
  std::optional<int64_t> integer(const char* key) const;
  std::optional<double> number(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> text(const char* key) const;
  std::optional<std::vector<double>> numbers(const char* key) const;
  std::optional<std::vector<int64_t>> integers(const char* key) const;
  std::optional<std::array<int64_t, 2>> size(const char* key) const;  // n, or [height, width]

  template <class T>
  static void assign(T& to, const std::optional<T>& from) {
    if (from) to = *from;
  }

 private:
  const Json& object_;
  std::string where_;
};

// The strings of an array field; empty if it is absent.  Throws Error for another type.
std::vector<std::string> texts(const JsonFields& fields, const char* key);

// Options that are supported at one value alone: their default.  Throws Error for another value.
void require_defaults(const JsonFields& fields, std::initializer_list<std::pair<const char*, Json>> defaults);

}  // namespace vitrail::models
