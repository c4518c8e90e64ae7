// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/base/fields_json_internal.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"

namespace vitrail {
namespace {

using Json = nlohmann::ordered_json;

std::string shortened(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

// Each reads a value, and returns whether it is as described.
bool read_json(const Json& json, const FieldValue&, bool& to) {
  if (json.is_boolean()) to = json.get<bool>();
  return json.is_boolean();
}
bool read_json(const Json& json, const FieldValue& value, int64_t& to) {
  const auto number = integer_of(json);
  const bool valid = number && *number >= value.integers.min && *number <= value.integers.max;
  if (valid) to = *number;
  return valid;
}
bool read_json(const Json& json, const FieldValue& value, double& to) {
  if (!json.is_number()) return false;
  const double number = json.get<double>();
  const bool valid = number >= value.numbers.min && number <= value.numbers.max;
  if (valid) to = number;
  return valid;
}
bool read_json(const Json& json, const FieldValue& value, std::string& to) {
  if (!json.is_string()) return false;
  const std::string text = json.get<std::string>();
  const bool valid = value.allowed.empty() || std::ranges::find(value.allowed, text) != value.allowed.end();
  if (valid) to = text;
  return valid;
}
template <class T>
bool read_json(const Json& json, const FieldValue& value, std::vector<T>& to) {
  if (!json.is_array()) return false;
  std::vector<T> values(json.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!read_json(json[i], value, values[i])) return false;
  }
  to = std::move(values);
  return true;
}
bool read_json(const Json& json, const FieldValue&, std::array<int64_t, 2>& to) {
  const bool two = json.is_array() && json.size() == 2;
  const auto height = integer_of(two ? json[0] : json), width = integer_of(two ? json[1] : json);
  if (!height || !width) return false;
  to = {*height, *width};
  return true;
}

// null stands for an empty text or list.
bool clear(const FieldValue& value) {
  const auto clear_member = [&](auto* member) {
    if constexpr (requires { member->clear(); }) member->clear();
    return requires { member->clear(); };
  };
  return value.allowed.empty() && std::visit(clear_member, value.member);
}

std::string expected_in_json(const Field& field, const FieldValue& value) {
  struct Visitor {
    const FieldValue& field;
    std::string or_null;
    std::string operator()(const bool*) { return "true or false"; }
    std::string operator()(const int64_t*) { return expected_integer(field.integers) + or_null; }
    std::string operator()(const double*) { return expected_number(field.numbers) + or_null; }
    std::string operator()(const std::string*) {
      return field.allowed.empty() ? "a string" : "one of \"" + join(field.allowed, "\", \"") + "\"";
    }
    std::string operator()(const std::vector<int64_t>*) { return "an array: each " + expected_integer(field.integers); }
    std::string operator()(const std::vector<double>*) { return "an array: each " + expected_number(field.numbers); }
    std::string operator()(const std::vector<std::string>*) { return "an array of strings"; }
    std::string operator()(const std::array<int64_t, 2>*) { return "an integer or [height, width]"; }
  };
  return std::visit(Visitor{value, field.nullable ? " or null" : ""}, value.member);
}

}  // namespace

std::optional<int64_t> integer_of(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (number != std::floor(number) || std::abs(number) > 1e15) return std::nullopt;
  return static_cast<int64_t>(number);
}

JsonFieldReader::JsonFieldReader(const Json& object, std::string prefix, std::vector<Error>& problems, JsonNull null)
    : object_(object), prefix_(std::move(prefix)), problems_(problems), null_(null) {
  if (!object.is_object()) {
    const size_t end = prefix_.find_last_not_of(".: ");
    problems_.emplace_back(prefix_.substr(0, end + 1), "an object", shortened(object));
  }
}

void JsonFieldReader::add_problem(const std::string& name, const std::string& expected, const Json& got) {
  problems_.emplace_back(prefix_ + name, expected, shortened(got));
}

void JsonFieldReader::accept(const std::string& name) {
  if (std::ranges::find(known_, name) == known_.end()) known_.push_back(name);
}

const Json* JsonFieldReader::find(const char* name) {
  accept(name);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  if (found == object_.end() || (null_ == JsonNull::absent && found->is_null())) return nullptr;
  return &*found;
}

void JsonFieldReader::finish(const std::vector<std::string>& others) {
  if (!object_.is_object()) return;
  std::vector<std::string> listed = others;
  listed.insert(listed.end(), known_.begin(), known_.end());
  for (const auto& item : object_.items()) {
    if (std::ranges::find(known_, item.key()) != known_.end()) continue;
    problems_.emplace_back(prefix_ + item.key(), "one of the fields " + join(listed, " "),
                           "an unknown field" + did_you_mean(item.key(), listed));
  }
}

void JsonFieldReader::visit(const Field& field, const FieldValue& value) {
  const Json* found = find(field.name);
  if (!found || (found->is_null() && clear(value))) return;
  if (!std::visit([&](auto* member) { return read_json(*found, value, *member); }, value.member))
    add_problem(field.name, expected_in_json(field, value), *found);
}

void JsonFieldReader::object(const Field& field, const std::function<void(Fields&)>& describe) {
  const Json* found = find(field.name);
  static const Json kEmpty = Json::object();
  JsonFieldReader inner(found ? *found : kEmpty, prefix_ + field.name + ".", problems_, null_);
  describe(inner);
  inner.finish();
}

bool JsonFieldReader::is_set(const Field& field, bool current) {
  const Json* found = find(field.name);
  return found ? !found->is_null() : current;
}

void JsonFieldReader::reject(const Field& field, const std::string& expected) {
  add_problem(field.name, expected, *find(field.name));
}

void JsonFieldWriter::visit(const Field& field, const FieldValue& value) {
  std::visit([&](const auto* member) { json_[field.name] = *member; }, value.member);
  const auto* const size = std::get_if<std::array<int64_t, 2>*>(&value.member);
  if (size && (**size)[0] == (**size)[1] && !field.nullable)  // timm takes ref_feat_shape as a list alone
    json_[field.name] = (**size)[0];
}

void JsonFieldWriter::object(const Field& field, const std::function<void(Fields&)>& describe) {
  JsonFieldWriter inner;
  describe(inner);
  json_[field.name] = inner.json();
}

bool JsonFieldWriter::is_set(const Field& field, bool current) {
  if (!current) json_[field.name] = nullptr;
  return current;
}

}  // namespace vitrail
