// SPDX-License-Identifier: Apache-2.0
// Fuzzes the regular expressions of key maps.  Every input must give the same match as the expression by itself, in
// limited time, or a vitrail::Error.  The replacement and the keys follow the expression, one per line.
#include <cstdlib>
#include <regex>

#include "fuzz/inputs.h"
#include "vitrail/weights/key_pattern_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  std::string_view input = fuzz::text_of(data, size);
  const std::string expression = fuzz::cut(input, '\n'), replacement = fuzz::cut(input, '\n').substr(0, 64);
  fuzz::attempt([&] {
    const weights::KeyPattern pattern(expression, "fuzz");
    const std::regex plain(expression, std::regex::ECMAScript | std::regex_constants::__polynomial);
    for (const std::string& key : fuzz::lines_of(input, 4)) {
      const bool matches = pattern.replace(key, replacement).has_value();
      if (key.size() <= 256 && matches != std::regex_match(key, plain)) std::abort();
    }
  });
  return 0;
}
