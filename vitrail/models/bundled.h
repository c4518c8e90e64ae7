// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that come with vitrail, known by name.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vitrail::models {

struct BundledModel {
  std::string name;
  std::filesystem::path folder;  // hub layout
};

constexpr const char* kDefaultModel = "cifar10-vit";  // what the program runs when none is named

// All that there are, sorted by name: folders with a config.json under $VITRAIL_HOME/models, in the installation that
// the program belongs to (share/vitrail/models), in the source tree it was built in, and in the installation that the
// library was configured for.  Where two have a name, the first wins.
std::vector<BundledModel> bundled_models();

std::optional<std::filesystem::path> find_bundled(const std::string& name);

}  // namespace vitrail::models
