// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/data/datasets/input_paths.h"

struct vitrail_paths {
  std::vector<std::string> paths;
};

namespace vitrail::c_api {
namespace {

std::vector<std::string> images_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const data::InputPath& input : data::expand_input_paths({folder})) {
    if (input.path == folder && input.error.empty()) throw Error(folder, "a folder", "none");
    if (input.path == folder) throw Error(input.error);
    paths.push_back(input.path);
  }
  return paths;
}

}  // namespace
}  // namespace vitrail::c_api

extern "C" {

vitrail_status* vitrail_list_images(const char* folder, vitrail_paths** images) {
  using namespace vitrail::c_api;
  return guarded([&] {
    vitrail_paths*& result = required(images, "images");
    result = new vitrail_paths{images_in(&required(folder, "folder"))};
  });
}

const char* vitrail_paths_at(const vitrail_paths* paths, size_t index) {
  return index < paths->paths.size() ? paths->paths[index].c_str() : nullptr;
}

void vitrail_paths_free(vitrail_paths* paths) { delete paths; }

}  // extern "C"
