// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <filesystem>

#include "vitrail/tasks/detect/coco_results_internal.h"

namespace vitrail::tasks {

FileKind coco_results_kind() {
  return {.name = "coco",
          .help = "File for COCO's list of results of all images",
          .start = "[\n",
          .extension = "json",
          .media_type = "application/json",
          .joint = true,
          .separator = kCocoSeparator,
          .end = "\n]\n"};
}

nlohmann::ordered_json coco_image_id(const std::string& path) {
  std::string stem = std::filesystem::path(path).stem().string();
  int64_t number = 0;
  const char* const end = stem.data() + stem.size();
  const bool digits = !stem.empty() && stem.find_first_not_of("0123456789") == std::string::npos;
  if (digits && std::from_chars(stem.data(), end, number).ec == std::errc()) return number;
  return stem;
}

}  // namespace vitrail::tasks
