// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/label_map_set.h"

#include <algorithm>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/image/label_image.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

bool is_label_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The first folder that there is; empty: none.
fs::path one_of(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (is_label_folder(folder / name)) return folder / name;
  }
  return {};
}

std::vector<std::string> splits_in(const fs::path& images) {
  std::vector<std::string> found;
  for (const char* name : {"train", "training", "val", "validation", "test", "testing"}) {
    if (is_label_folder(images / name)) found.push_back(name);
  }
  return found;
}

// The path inside a folder without the extension.
std::string key_of(const std::string& path, const fs::path& folder) {
  return fs::path(path).lexically_relative(folder).replace_extension().generic_string();
}

}  // namespace

LabelMapSet open_label_map_set(const fs::path& folder, const std::vector<std::string>& splits) {
  fs::path images = one_of(folder, {"images", "img_dir"});
  fs::path labels = one_of(folder, {"labels", "annotations", "ann_dir", "masks"});
  if (images.empty() || labels.empty()) {
    throw Error(folder.string(),
                "the folders images and labels (or annotations), with an image and a PNG of class indices of each name",
                images.empty() ? "no folder images" : "no folder labels");
  }
  LabelMapSet set;
  if (const std::vector<std::string> found = splits_in(images); !found.empty()) {
    const auto wanted = std::ranges::find_first_of(splits, found);
    if (wanted == splits.end()) throw Error(images.string(), "a folder " + join(splits, " or "), join(found));
    set.split = *wanted;
    images /= set.split;
    labels /= set.split;
  }
  std::map<std::string, std::string> labels_of;
  for (const std::string& path : list_images(labels)) labels_of.emplace(key_of(path, labels), path);
  for (const std::string& path : list_images(images)) {
    const std::string key = key_of(path, images);
    const auto found = labels_of.find(key);
    if (found == labels_of.end()) throw Error(path, "its labels " + (labels / (key + ".png")).string(), "none");
    set.samples.push_back({path, found->second});
  }
  if (set.samples.empty()) throw Error(images.string(), "images", "none");
  return set;
}

std::vector<int32_t> read_label_map(const std::string& path, int64_t width, int64_t height,
                                    const LabelMapReading& reading) {
  image::LabelImage image = image::read_labels(path);
  if (image.width != width || image.height != height)
    throw Error(path, str("labels of the image's size ", width, "×", height), str(image.width, "×", image.height));
  if (reading.reduce_labels) {
    for (int32_t& label : image.labels) {
      if (label != reading.ignored) label = label == 0 ? reading.ignored : label - 1;
    }
  }
  return std::move(image.labels);
}

}  // namespace vitrail::data
