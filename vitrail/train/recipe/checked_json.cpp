// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/fields_json_internal.h"
#include "vitrail/train/recipe/checked_json_internal.h"

namespace vitrail::train {

int64_t checked_count(const nlohmann::ordered_json& value, const std::string& name, int64_t min, int64_t max) {
  const auto number = integer_of(value);
  if (!number || *number < min || *number > max)
    throw Error(name, str("an integer from ", min, " to ", max), value.dump().substr(0, 60));
  return *number;
}

double checked_number(const nlohmann::ordered_json& value, const std::string& name, double min, double max) {
  if (value.is_null()) return std::nan("");
  if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max))
    throw Error(name, str("a number from ", min, " to ", max, ", or null"), value.dump().substr(0, 60));
  return value.get<double>();
}

double checked_finite(const nlohmann::ordered_json& value, const std::string& name, double min, double max) {
  const double number = checked_number(value, name, min, max);
  if (!std::isfinite(number)) throw Error(name, "a number", value.dump());
  return number;
}

CheckedArray::CheckedArray(const nlohmann::ordered_json& array, std::string where, size_t size)
    : array_(array), where_(std::move(where)) {
  if (!array.is_array() || array.size() != size)
    throw Error(where_, "an array of " + std::to_string(size) + " numbers", array.dump().substr(0, 60));
}

}  // namespace vitrail::train
