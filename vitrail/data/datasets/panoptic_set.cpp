// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/panoptic_set.h"

#include <algorithm>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/annotation_json_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPanopticPrefix = "panoptic_";

// NAME of each file annotations/panoptic_NAME.json, sorted.
std::vector<std::string> annotation_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder / "annotations", error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = path.stem().string();
    if (path.extension() == ".json" && name.starts_with(kPanopticPrefix))
      names.push_back(name.substr(kPanopticPrefix.size()));
  }
  std::ranges::sort(names);
  return names;
}

std::string panoptic_name(const fs::path& folder, const std::vector<std::string>& splits) {
  const std::vector<std::string> names = annotation_names(folder);
  for (const std::string& split : splits) {
    for (const std::string& name : names) {
      if (name.starts_with(split)) return name;
    }
  }
  if (names.size() == 1) return names.front();
  throw Error((folder / "annotations").string(),
              "a file panoptic_NAME.json whose NAME begins with " + join(splits, " or "),
              names.empty() ? "none" : join(names));
}

std::string path_inside(const fs::path& folder, const AnnotationObject& object) {
  return (folder / file_name_inside(object, folder.filename().string())).string();
}

// The index of each category's id.
std::map<int64_t, int64_t> read_categories(const AnnotationObject& file, PanopticSet& set) {
  std::map<int64_t, PanopticSet::Category> by_id;
  for (const AnnotationObject& category : file.objects("categories")) {
    const int64_t id = category.integer("id");
    if (!by_id.emplace(id, PanopticSet::Category{category.text("name"), category.integer("isthing") == 1}).second)
      throw Error(category.where() + ": id", "one of its own", str(id));
  }
  std::map<int64_t, int64_t> index_of;
  for (const auto& [id, category] : by_id) {
    index_of[id] = static_cast<int64_t>(set.categories.size());
    set.categories.push_back(category);
  }
  return index_of;
}

std::vector<PanopticSet::Segment> read_segments(const AnnotationObject& annotation,
                                                const std::map<int64_t, int64_t>& index_of) {
  constexpr int64_t kIds = 1 << 24;
  std::vector<PanopticSet::Segment> segments;
  for (const AnnotationObject& each : annotation.objects("segments_info")) {
    const int64_t id = each.integer("id"), category = each.integer("category_id");
    if (id < 1 || id >= kIds) throw Error(each.where() + ": id", str("1 to ", kIds - 1), str(id));
    const auto index = index_of.find(category);
    if (index == index_of.end()) throw Error(each.where() + ": category_id", "the id of a category", str(category));
    segments.push_back({static_cast<int32_t>(id), index->second, each.is_crowd()});
  }
  return segments;
}

}  // namespace

bool is_panoptic_set(const fs::path& folder) { return !annotation_names(folder).empty(); }

PanopticSet open_panoptic_set(const fs::path& folder, const std::vector<std::string>& splits) {
  PanopticSet set;
  set.name = panoptic_name(folder, splits);
  const fs::path maps = folder / "annotations" / (std::string(kPanopticPrefix) + set.name),
                 path = maps.string() + ".json";
  const nlohmann::json content = read_annotations(path);
  const AnnotationObject file(content, path.string());
  const std::map<int64_t, int64_t> index_of = read_categories(file, set);
  std::map<int64_t, std::string> images;
  for (const AnnotationObject& image : file.objects("images"))
    images[image.integer("id")] = path_inside(folder / set.name, image);
  for (const AnnotationObject& annotation : file.objects("annotations")) {
    const int64_t id = annotation.integer("image_id");
    const auto image = images.find(id);
    if (image == images.end()) throw Error(annotation.where() + ": image_id", "the id of an image", str(id));
    set.samples.push_back({image->second, path_inside(maps, annotation), read_segments(annotation, index_of)});
  }
  if (set.samples.empty()) throw Error(path.string(), "annotations", "none");
  std::ranges::sort(set.samples, {}, &PanopticSet::Sample::image);
  return set;
}

std::vector<int32_t> read_panoptic_ids(const std::string& path, int64_t width, int64_t height) {
  const image::Image map = image::read_image(path, {.mode = image::ColorMode::rgb});
  if (map.width != width || map.height != height)
    throw Error(path, str("segments of the image's size ", width, "×", height), str(map.width, "×", map.height));
  std::vector<int32_t> ids(static_cast<size_t>(width * height));
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint8_t* const pixel = map.pixels.data() + 3 * i;
    ids[i] = pixel[0] | pixel[1] << 8 | pixel[2] << 16;
  }
  return ids;
}

}  // namespace vitrail::data
