// SPDX-License-Identifier: Apache-2.0
// Parses the sections of a policy's name.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/augment/auto_augment_policies_internal.h"

namespace vitrail::data {

std::map<std::string, double> parse_sections(const std::string& name, const std::vector<std::string>& known) {
  std::map<std::string, double> sections;
  for (size_t dash = name.find('-'); dash != name.npos;) {
    const size_t next = name.find('-', dash + 1);
    const std::string section = name.substr(dash + 1, next == name.npos ? next : next - dash - 1);
    dash = next;
    const size_t key_size = std::min(section.find_first_of("0123456789"), section.size());
    const std::string key = section.substr(0, key_size);
    double value = 0;
    const char* end = section.data() + section.size();
    const auto [stop, error] = std::from_chars(section.data() + key_size, end, value);
    if (error != std::errc() || stop != end) throw Error("policy " + name, "sections like m9", "'" + section + "'");
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error("policy " + name, "the sections " + join(known), "'" + section + "'");
    }
    if (!sections.emplace(key, value).second) throw Error("policy " + name, "each section once", key + " twice");
  }
  return sections;
}

int64_t integer_section(const std::string& name, const std::string& key, double value, int64_t min, int64_t max) {
  if (value != std::floor(value) || value < static_cast<double>(min) || value > static_cast<double>(max)) {
    throw Error("policy " + name, str("an integer from ", min, " to ", max, " for ", key), str(value));
  }
  return static_cast<int64_t>(value);
}

}  // namespace vitrail::data
