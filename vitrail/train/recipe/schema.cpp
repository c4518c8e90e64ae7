// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/recipe/schema_internal.h"

namespace vitrail::train {
namespace {

std::string shortened(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string describe(const char* what, Range range) {
  if (range.min <= std::numeric_limits<double>::lowest()) return what;
  if (range.max >= std::numeric_limits<double>::max()) return str(what, " of at least ", range.min);
  return str(what, " from ", range.min, " to ", range.max);
}

bool in_range(double value, Range range) { return value >= range.min && value <= range.max; }

}  // namespace

void Schema::pair(const char* name, std::array<double, 2>& values, Range range) {
  std::vector<double> list{values[0], values[1]};
  number_list(name, list, range);
  if (list.size() != 2) return wrong_pair(name, "an array of two numbers");
  values = {list[0], list[1]};
}

void Schema::pair(const char* name, std::array<int64_t, 2>& values, int64_t min) {
  std::array<double, 2> list{static_cast<double>(values[0]), static_cast<double>(values[1])};
  pair(name, list, {static_cast<double>(min), 1e6});
  if (list[0] != std::floor(list[0]) || list[1] != std::floor(list[1]))
    return wrong_pair(name, "an array of two integers");
  values = {static_cast<int64_t>(list[0]), static_cast<int64_t>(list[1])};
}

SchemaReader::SchemaReader(const Json& object, std::string path, std::vector<std::string>& problems)
    : object_(object), path_(std::move(path)), problems_(problems) {
  if (!object.is_object()) problems_.push_back(str(path_, ": expected an object, got ", shortened(object)));
}

std::string SchemaReader::path(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }

void SchemaReader::add_problem(const std::string& name, const std::string& expected, const Json& got) {
  problems_.push_back(str(path(name), ": expected ", expected, ", got ", shortened(got)));
}

void SchemaReader::accept(const std::string& name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.push_back(name);
}

const Json* SchemaReader::find(const char* name) {
  accept(name);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

void SchemaReader::finish() {
  if (!object_.is_object()) return;
  for (const auto& item : object_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    problems_.push_back(str(path(item.key()), ": expected one of the fields ", join(known_, " "),
                            ", got an unknown field", did_you_mean(item.key(), known_)));
  }
}

void SchemaReader::integer(const char* name, int64_t& value, int64_t min, int64_t max) {
  const Json* found = find(name);
  if (!found) return;
  const auto number = models::integer_of(*found);
  if (!number || *number < min || *number > max) {
    return add_problem(
        name, max == INT64_MAX ? str("an integer of at least ", min) : str("an integer from ", min, " to ", max),
        *found);
  }
  value = *number;
}

void SchemaReader::integer(const char* name, std::optional<int64_t>& value, int64_t min) {
  const Json* found = find(name);
  if (!found) return;
  const auto number = models::integer_of(*found);
  if (found->is_null()) return value.reset();
  if (!number || *number < min) return add_problem(name, str("an integer of at least ", min, " or null"), *found);
  value = *number;
}

void SchemaReader::number(const char* name, double& value, Range range) {
  const Json* found = find(name);
  if (!found) return;
  if (!found->is_number() || !in_range(found->get<double>(), range))
    return add_problem(name, describe("a number", range), *found);
  value = found->get<double>();
}

void SchemaReader::number(const char* name, std::optional<double>& value, Range range) {
  const Json* found = find(name);
  if (!found) return;
  if (found->is_null()) return value.reset();
  if (!found->is_number() || !in_range(found->get<double>(), range))
    return add_problem(name, describe("a number", range) + " or null", *found);
  value = found->get<double>();
}

void SchemaReader::boolean(const char* name, bool& value) {
  const Json* found = find(name);
  if (!found) return;
  if (!found->is_boolean()) return add_problem(name, "true or false", *found);
  value = found->get<bool>();
}

void SchemaReader::string(const char* name, std::string& value) {
  const Json* found = find(name);
  if (!found) return;
  if (found->is_null()) return value.clear();
  if (!found->is_string()) return add_problem(name, "a string", *found);
  value = found->get<std::string>();
}

void SchemaReader::choice(const char* name, std::string& value, const std::vector<std::string>& allowed) {
  const Json* found = find(name);
  if (!found) return;
  if (!found->is_string() || std::find(allowed.begin(), allowed.end(), found->get<std::string>()) == allowed.end()) {
    std::string list;
    for (const std::string& word : allowed) list += (list.empty() ? "\"" : ", \"") + word + "\"";
    return add_problem(name, "one of " + list, *found);
  }
  value = found->get<std::string>();
}

void SchemaReader::number_list(const char* name, std::vector<double>& values, Range range) {
  const Json* found = find(name);
  if (!found) return;
  if (found->is_null()) return values.clear();
  bool valid = found->is_array();
  for (size_t i = 0; valid && i < found->size(); ++i)
    valid = (*found)[i].is_number() && in_range((*found)[i].get<double>(), range);
  if (!valid) return add_problem(name, "an array: each " + describe("a number", range), *found);
  values = found->get<std::vector<double>>();
}

void SchemaReader::string_list(const char* name, std::vector<std::string>& values) {
  const Json* found = find(name);
  if (!found) return;
  if (found->is_null()) return values.clear();
  bool valid = found->is_array();
  for (size_t i = 0; valid && i < found->size(); ++i) valid = (*found)[i].is_string();
  if (!valid) return add_problem(name, "an array of strings", *found);
  values = found->get<std::vector<std::string>>();
}

void SchemaReader::object(const char* name, const std::function<void(Schema&)>& describe) {
  const Json* found = find(name);
  static const Json kEmpty = Json::object();
  SchemaReader inner(found ? *found : kEmpty, path(name), problems_);
  describe(inner);
  inner.finish();
}

bool SchemaReader::is_set(const char* name, bool current) {
  const Json* found = find(name);
  return found ? !found->is_null() : current;
}

void SchemaReader::wrong_pair(const char* name, const std::string& expected) {
  add_problem(name, expected, *find(name));
}

void SchemaWriter::object(const char* name, const std::function<void(Schema&)>& describe) {
  SchemaWriter inner;
  describe(inner);
  json_[name] = inner.json();
}

bool SchemaWriter::is_set(const char* name, bool current) {
  if (!current) json_[name] = nullptr;
  return current;
}

}  // namespace vitrail::train
