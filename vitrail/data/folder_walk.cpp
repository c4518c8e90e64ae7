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
    if (!error && std::find(ancestors_.begin(), ancestors_.end(), real) != ancestors_.end())
      return;  // a link to an ancestor
    fs::directory_iterator entries(folder, error);
    if (error) throw Error(str(folder.string(), ": cannot be read: ", error.message()));
    ancestors_.push_back(real);
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
    ancestors_.pop_back();
  }

 private:
  std::vector<fs::path> ancestors_;  // from the root to the current folder
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
