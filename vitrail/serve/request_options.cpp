// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/serve/request_options_internal.h"

namespace vitrail::serve {

int64_t parse_integer(const std::string& where, std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    throw Error(where, str("an integer from ", min, " to ", max), "'" + std::string(text) + "'");
  return value;
}

std::vector<std::string> RequestOptions::texts(const std::string& name) {
  taken_.insert(name);
  std::vector<std::string> values;
  for (const auto& [key, value] : given_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::optional<std::string> RequestOptions::text(const std::string& name) {
  const std::vector<std::string> values = texts(name);
  if (values.size() > 1) throw Error(name, "one value", str(values.size()));
  return values.empty() ? std::nullopt : std::optional(values.front());
}

std::string RequestOptions::one_of(const std::string& name, const std::vector<std::string>& values) {
  const std::string value = text(name, values.front());
  if (std::ranges::find(values, value) != values.end()) return value;
  throw Error(name, "one of " + join(values), "'" + value + "'");
}

int64_t RequestOptions::integer(const std::string& name, int64_t preset, int64_t min, int64_t max) {
  const auto value = text(name);
  return value ? parse_integer(name, *value, min, max) : preset;
}

std::vector<int64_t> RequestOptions::integers(const std::string& name, const std::vector<int64_t>& preset) {
  const auto value = text(name);
  if (!value) return preset;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  std::vector<int64_t> list;
  for (size_t at = 0; at <= value->size();) {
    const size_t comma = std::min(value->find(',', at), value->size());
    list.push_back(parse_integer(name, std::string_view(*value).substr(at, comma - at), -kMax, kMax));
    at = comma + 1;
  }
  return list;
}

double RequestOptions::number(const std::string& name, double preset, double min, double max) {
  const auto value = text(name);
  if (!value) return preset;
  double result = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
  if (error != std::errc() || end != value->data() + value->size() || !(result >= min && result <= max))
    throw Error(name, str("a number from ", min, " to ", max), "'" + *value + "'");
  return result;
}

bool RequestOptions::flag(const std::string& name) {
  const auto value = text(name);
  if (!value || *value == "false" || *value == "0") return false;
  if (value->empty() || *value == "true" || *value == "1") return true;
  throw Error(name, "true or false", "'" + *value + "'");
}

void RequestOptions::require_all_taken() const {
  for (const auto& [name, value] : given_) {
    if (taken_.contains(name)) continue;
    const std::vector<std::string> known(taken_.begin(), taken_.end());
    const std::vector<std::string> near = near_names(name, known);
    throw Error("request", "an option of this route: " + join(near.empty() ? known : near), "'" + name + "'");
  }
}

}  // namespace vitrail::serve
