// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a request: named as the command line's; on a server in the query, in a form's
// fields or in a JSON body.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/base/fields.h"

namespace vitrail::tasks {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// A description of fields takes their options, the functions below take one by its name.  A value that is not as
// described throws Error.
class RequestOptions : public TextFieldReader {
 public:
  void add(const std::string& name, const std::string& value) { given_.emplace_back(name, value); }
  void add(const Parameters& parameters) { given_.insert(given_.end(), parameters.begin(), parameters.end()); }

  using TextFieldReader::text, TextFieldReader::texts;
  std::optional<std::string> text(const std::string& name) { return text_of(name); }
  std::vector<std::string> texts(const std::string& name);  // the values of an option that may be repeated
  bool flag(const char* name);                              // "exif", "exif=true", "exif=false"

  // Throws Error for an option that was given but not taken.
  void require_all_taken() const;

 private:
  std::vector<std::string> texts_of(const std::string& name) override { return texts(name); }

  Parameters given_;
  std::set<std::string> taken_;
};

}  // namespace vitrail::tasks
