// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/request_options.h"

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"

namespace vitrail::tasks {

std::vector<std::string> RequestOptions::texts(const std::string& name) {
  taken_.insert(name);
  std::vector<std::string> values;
  for (const auto& [key, value] : given_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

bool RequestOptions::flag(const char* name) {
  bool value = false;
  boolean(name, value);
  return value;
}

void RequestOptions::require_all_taken() const {
  for (const auto& [name, value] : given_) {
    if (taken_.contains(name)) continue;
    const std::vector<std::string> known(taken_.begin(), taken_.end());
    const std::vector<std::string> near = near_names(name, known);
    throw Error("request", "an option of this route: " + join(near.empty() ? known : near), "'" + name + "'");
  }
}

}  // namespace vitrail::tasks
