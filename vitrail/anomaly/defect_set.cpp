// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/defect_set.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/input_paths.h"

namespace vitrail::anomaly {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string mask_of(const fs::path& masks, const TestImage& image) {
  const std::string stem = fs::path(image.path).stem().string();
  for (const char* ending : {"_mask.png", ".png"}) {
    const fs::path path = masks / image.kind / (stem + ending);
    std::error_code error;
    if (fs::exists(path, error)) return path.string();
  }
  throw Error(image.path, "a mask " + (masks / image.kind / (stem + "_mask.png")).string(), "none");
}

}  // namespace

DefectSet open_defect_set(const fs::path& folder) {
  const fs::path test = is_folder(folder / "test") ? folder / "test" : folder;
  const fs::path masks = folder / "ground_truth";
  DefectSet set{.images = {}, .has_masks = is_folder(masks)};
  for (const std::string& path : data::list_images(test)) {
    const fs::path inside = fs::path(path).lexically_relative(test);
    const std::string kind = inside.begin()->string();
    if (std::next(inside.begin()) == inside.end() || kind == "ground_truth" || kind == "train") continue;
    set.images.push_back({.path = path, .kind = kind, .mask = ""});
    if (set.has_masks && kind != "good") set.images.back().mask = mask_of(masks, set.images.back());
  }
  const auto good = std::ranges::count_if(set.images, &TestImage::is_good);
  if (good == 0 || good == std::ssize(set.images))
    throw Error(test.string(), "a folder good and a folder for each kind of defect, with images",
                str(good, " good images and ", std::ssize(set.images) - good, " with a defect"));
  return set;
}

}  // namespace vitrail::anomaly
