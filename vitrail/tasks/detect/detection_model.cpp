// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/detection_model.h"

#include <charconv>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::tasks {
namespace {

// The indices that a name has, which several may share, or that a number is.
std::set<int64_t> indices_of(const std::string& text, const std::vector<std::string>& names,
                             const std::string& option) {
  std::set<int64_t> indices;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) indices.insert(static_cast<int64_t>(i));
  }
  if (!indices.empty()) return indices;
  int64_t index = -1;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, index).ptr != end || index < 0 || index >= std::ssize(names)) {
    throw Error(option, str("a name or an index of the model's ", names.size(), " classes") + did_you_mean(text, names),
                "'" + text + "'");
  }
  return {index};
}

}  // namespace

std::set<int64_t> class_indices(const std::vector<std::string>& texts, const std::vector<std::string>& names,
                                const std::string& option) {
  std::set<int64_t> indices;
  for (const std::string& text : texts) indices.merge(indices_of(text, names, option));
  return indices;
}

}  // namespace vitrail::tasks
