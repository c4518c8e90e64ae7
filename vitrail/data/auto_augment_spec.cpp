// SPDX-License-Identifier: Apache-2.0
// Reading a policy's name, and the draws that policies share.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/data/auto_augment_policies_internal.h"

namespace vitrail::data {

std::map<std::string, double> sections_of(const std::string& name, const std::vector<std::string>& known) {
  std::map<std::string, double> sections;
  for (size_t dash = name.find('-'); dash != name.npos;) {
    const size_t next = name.find('-', dash + 1);
    const std::string section = name.substr(dash + 1, next == name.npos ? next : next - dash - 1);
    dash = next;
    const size_t digits = std::min(section.find_first_of("0123456789"), section.size());
    const std::string key = section.substr(0, digits);
    double value = 0;
    const char* end = section.data() + section.size();
    const auto [stop, error] = std::from_chars(section.data() + digits, end, value);
    if (error != std::errc() || stop != end) throw Error("policy " + name, "sections like m9", "'" + section + "'");
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::string list;
      for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
      throw Error("policy " + name, "the sections " + list, "'" + section + "'");
    }
    if (!sections.emplace(key, value).second) throw Error("policy " + name, "each section once", key + " twice");
  }
  return sections;
}

int64_t whole_section(const std::string& name, const std::string& key, double value, int64_t least, int64_t most) {
  if (value != std::floor(value) || value < static_cast<double>(least) || value > static_cast<double>(most)) {
    throw Error("policy " + name, str("a whole number from ", least, " to ", most, " for ", key), str(value));
  }
  return static_cast<int64_t>(value);
}

int64_t below(RandomStream& random, int64_t count) {
  return std::min(static_cast<int64_t>(random.uniform() * static_cast<double>(count)), count - 1);
}

bool coin(RandomStream& random) { return (random.bits() & 1) != 0; }

image::Filter pick(RandomStream& random, const Filters& filters) {
  return filters.size() == 1 ? filters[0] : filters[below(random, static_cast<int64_t>(filters.size()))];
}

}  // namespace vitrail::data
