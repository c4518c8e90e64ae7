// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/class_names.h"

#include <algorithm>
#include <charconv>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/data/datasets/imagenet_labels.h"
#include "vitrail/models/label_file_internal.h"

namespace vitrail::pipeline {
namespace {

// Labels are in index order: every class is then called by another one's name.
void warn_of_another_order(std::vector<std::string> names, std::vector<std::string> own, const std::string& file) {
  if (names == own) return;
  std::ranges::sort(names);
  std::ranges::sort(own);
  if (names == own) warn(file + ": the names of the model's own classes in another order, which is taken as it is");
}

}  // namespace

std::vector<std::string> class_names(const models::ModelConfig& config, const std::string& labels_file) {
  if (config.vit.projection_head) return {};
  const auto classes = static_cast<size_t>(config.vit.num_classes);
  if (!labels_file.empty()) {
    std::vector<std::string> names = models::parse_labels(read_text_file(labels_file), labels_file, classes);
    if (names.size() != classes)
      throw Error(labels_file, str(classes, " class names, one per line"), str(names.size()));
    warn_of_another_order(names, class_names(config), labels_file);
    return names;
  }
  if (!config.descriptions.empty()) return config.descriptions;
  if (!config.labels.empty()) return config.labels;
  if (!models::has_imagenet_classes(config)) return {};
  return {data::imagenet_class_names().begin(), data::imagenet_class_names().end()};
}

int64_t class_index(const std::string& where, const std::string& text, const std::vector<std::string>& names,
                    int64_t num_classes) {
  if (const auto named = std::ranges::find(names, text); named != names.end()) return named - names.begin();
  int64_t index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error == std::errc() && end == text.data() + text.size() && index >= 0 && index < num_classes) return index;
  throw Error(where, str("the name of a class, or its index from 0 to ", num_classes - 1),
              "'" + text + "'" + did_you_mean(text, names));
}

}  // namespace vitrail::pipeline
