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

std::optional<int64_t> integer_in(const Json& value, IntegerRange range) {
  const auto number = integer_of(value);
  return number && *number >= range.min && *number <= range.max ? number : std::nullopt;
}

std::optional<double> number_in(const Json& value, Range range) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return number >= range.min && number <= range.max ? std::optional(number) : std::nullopt;
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

void JsonFieldReader::visit_integer(const Field& field, int64_t& value, IntegerRange range) {
  const Json* found = find(field.name);
  if (!found) return;
  const auto number = integer_in(*found, range);
  if (!number) return add_problem(field.name, expected_integer(range) + (field.nullable ? " or null" : ""), *found);
  value = *number;
}

void JsonFieldReader::number(const Field& field, double& value, Range range) {
  const Json* found = find(field.name);
  if (!found) return;
  const auto number = number_in(*found, range);
  if (!number) return add_problem(field.name, expected_number(range) + (field.nullable ? " or null" : ""), *found);
  value = *number;
}

void JsonFieldReader::boolean(const Field& field, bool& value) {
  const Json* found = find(field.name);
  if (!found) return;
  if (!found->is_boolean()) return add_problem(field.name, "true or false", *found);
  value = found->get<bool>();
}

void JsonFieldReader::text(const Field& field, std::string& value) {
  const Json* found = find(field.name);
  if (!found) return;
  if (found->is_null()) return value.clear();
  if (!found->is_string()) return add_problem(field.name, "a string", *found);
  value = found->get<std::string>();
}

void JsonFieldReader::choice(const Field& field, std::string& value, const std::vector<std::string>& allowed) {
  const Json* found = find(field.name);
  if (!found) return;
  if (!found->is_string() || std::ranges::find(allowed, found->get<std::string>()) == allowed.end()) {
    return add_problem(field.name, "one of \"" + join(allowed, "\", \"") + "\"", *found);
  }
  value = found->get<std::string>();
}

template <class T>
void JsonFieldReader::list(const Field& field, std::vector<T>& values, const std::string& expected,
                           const std::function<std::optional<T>(const Json&)>& element) {
  const Json* found = find(field.name);
  if (!found) return;
  if (found->is_null()) return values.clear();
  std::vector<T> result;
  bool valid = found->is_array();
  for (size_t i = 0; valid && i < found->size(); ++i) {
    const std::optional<T> value = element((*found)[i]);
    if (value) result.push_back(*value);
    valid = value.has_value();
  }
  if (!valid) return add_problem(field.name, expected, *found);
  values = std::move(result);
}

void JsonFieldReader::integers(const Field& field, std::vector<int64_t>& values, IntegerRange range) {
  list<int64_t>(field, values, "an array: each " + expected_integer(range),
                [&](const Json& value) { return integer_in(value, range); });
}

void JsonFieldReader::numbers(const Field& field, std::vector<double>& values, Range range) {
  list<double>(field, values, "an array: each " + expected_number(range),
               [&](const Json& value) { return number_in(value, range); });
}

void JsonFieldReader::texts(const Field& field, std::vector<std::string>& values) {
  list<std::string>(field, values, "an array of strings", [](const Json& value) {
    return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  });
}

void JsonFieldReader::size(const Field& field, std::array<int64_t, 2>& values) {
  const Json* found = find(field.name);
  if (!found) return;
  const bool two = found->is_array() && found->size() == 2;
  const auto height = integer_of(two ? (*found)[0] : *found), width = integer_of(two ? (*found)[1] : *found);
  if (!height || !width) return add_problem(field.name, "an integer or [height, width]", *found);
  values = {*height, *width};
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
