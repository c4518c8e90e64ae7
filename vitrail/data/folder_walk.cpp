// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/folder_walk_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

class Walk {
 public:
  FolderListing listing;

  void enter(const fs::path& folder, const std::string& prefix) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (!error && std::find(inside_.begin(), inside_.end(), real) != inside_.end()) return;  // a link that leads back
    fs::directory_iterator entries(folder, error);
    if (error) throw Error(str(folder.string(), ": cannot be read: ", error.message()));
    inside_.push_back(real);
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      const std::string name = prefix + entries->path().filename().string();
      std::error_code dangling;
      if (entries->is_directory(dangling)) {
        listing.folders.push_back(name);
        enter(entries->path(), name + "/");
      } else if (image::is_image_path(name)) {
        listing.images.push_back(name);
      }
    }
    if (error) throw Error(str(folder.string(), ": cannot be read: ", error.message()));
    inside_.pop_back();
  }

 private:
  std::vector<fs::path> inside_;  // the folders from the first one to the current one
};

}  // namespace

FolderListing walk_folder(const fs::path& folder) {
  Walk walk;
  walk.enter(folder, "");
  std::sort(walk.listing.images.begin(), walk.listing.images.end());
  std::sort(walk.listing.folders.begin(), walk.listing.folders.end());
  return std::move(walk.listing);
}

}  // namespace vitrail::data
