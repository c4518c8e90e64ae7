// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/int8_config.h"

#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
std::optional<Int8Config> int8_config(const JsonFields& fields) {
  if (!fields.has("int8")) return std::nullopt;
  const JsonFields int8(fields.at("int8"), fields.path("int8"));
  // Files of earlier versions call the excluded layers "kept".
  return Int8Config{texts(int8, int8.has("excluded") ? "excluded" : "kept")};
}

std::optional<Int8Config> read_int8_config(const std::string& config_json, const std::string& path) {
  const Json json = parse_json(config_json, path);
  return int8_config(JsonFields(json, path));
}

std::string with_int8_config(const std::string& config_json, const std::optional<Int8Config>& int8) {
  Json json = parse_json(config_json, "config.json");
  json.erase("int8");
  if (int8) json["int8"] = {{"excluded", int8->excluded}};
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
