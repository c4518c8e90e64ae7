// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/families/family.h"

#include <algorithm>
#include <filesystem>

namespace vitrail::app {
namespace {

// The last one takes what no other does, and says what is wrong with it.
const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> rows{segment_family(), image_family()};
  return rows;
}

}  // namespace

bool is_configuration(const std::string& text) {
  const std::filesystem::path path = text;
  std::error_code unreadable;
  return path.extension() == ".json" ||
         (std::ranges::any_of(families(), [&](const ModelFamily& family) { return family.has_architecture(text); }) &&
          !std::filesystem::exists(path, unreadable));
}

NamedModel open_named(const std::string& name) {
  if (is_configuration(name)) return {name, std::nullopt};
  return {name, models::ModelFiles(name)};
}

const ModelFamily& family_of(const NamedModel& model) {
  return *std::ranges::find_if(families(), [&](const ModelFamily& family) { return family.takes(model); });
}

}  // namespace vitrail::app
