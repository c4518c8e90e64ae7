// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a request: named as the command line's, in the query, in a form's fields or in a JSON body.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vitrail/serve/target_internal.h"

namespace vitrail::serve {

// Each function takes an option by its name.  A value that is not as documented throws Error.
class RequestOptions {
 public:
  void add(const std::string& name, const std::string& value) { given_.emplace_back(name, value); }
  void add(const Parameters& parameters) { given_.insert(given_.end(), parameters.begin(), parameters.end()); }

  std::optional<std::string> text(const std::string& name);
  std::string text(const std::string& name, const std::string& preset) { return text(name).value_or(preset); }
  std::vector<std::string> texts(const std::string& name);  // the values of an option that may be repeated
  std::string one_of(const std::string& name, const std::vector<std::string>& values);  // the first value by default
  int64_t integer(const std::string& name, int64_t preset, int64_t min, int64_t max);
  std::vector<int64_t> integers(const std::string& name, const std::vector<int64_t>& preset);  // "-1,-4"
  double number(const std::string& name, double preset, double min, double max);
  bool flag(const std::string& name);  // "exif", "exif=true", "exif=false"

  // Throws Error for an option that was given but not taken.
  void require_all_taken() const;

 private:
  Parameters given_;
  std::set<std::string> taken_;
};

// An integer in decimal digits.  Throws Error naming `where` for other text.
int64_t parse_integer(const std::string& where, std::string_view text, int64_t min, int64_t max);

}  // namespace vitrail::serve
