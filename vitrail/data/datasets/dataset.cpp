// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/dataset.h"

#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::data {

std::string summary(const Dataset& dataset, const std::string& path) {
  constexpr size_t kListed = 10;
  std::set<int64_t> labels;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    for (const int64_t label : dataset.labels(i)) labels.insert(label);
  }
  std::string text = str(dataset.size(), dataset.size() == 1 ? " image of " : " images of ", path);
  if (!dataset.split().empty()) text += (path.ends_with('/') ? "" : "/") + dataset.split();
  if (dataset.is_multi_label()) text += ", with several labels each";
  text += str(", ", labels.size(), labels.size() == 1 ? " class: " : " classes: ");
  return text + join_first(kListed, labels, ", ", [&](int64_t label) {
           const auto index = static_cast<size_t>(label);
           return index < dataset.class_names().size() ? dataset.class_names()[index] : std::to_string(label);
         });
}

}  // namespace vitrail::data
