// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/objects/object_set.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/objects/object_reader_internal.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kObjectForms =
    "COCO's annotations (annotations/instances_NAME.json or NAME/_annotations.coco.json), YOLO's data.yaml, Pascal "
    "VOC's Annotations/*.xml, or a CSV file with the columns image, label, x1, y1, x2, y2";

struct NamedReader {
  const char* form;
  ObjectReaderPtr reader;
};

std::vector<NamedReader> readers_of(const fs::path& path, bool keypoints) {
  std::vector<NamedReader> readers;
  const auto add = [&](const char* form, ObjectReaderPtr reader) {
    if (reader) readers.push_back({form, std::move(reader)});
  };
  add("COCO", coco_reader(path, keypoints));
  add("YOLO", yolo_reader(path));
  add("Pascal VOC", voc_reader(path));
  add("CSV", csv_object_reader(path));
  return readers;
}

// What is at a path that is no set.
std::string found_at(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return "nothing";
  if (!fs::is_directory(path, error)) return "another file";
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string() + (entry->is_directory(error) ? "/" : ""));
  std::ranges::sort(names);
  constexpr size_t kMaxNames = 5;
  return names.empty() ? "an empty folder" : "a folder with " + join_first(kMaxNames, names);
}

ObjectReaderPtr reader_of(const fs::path& path, bool keypoints) {
  std::vector<NamedReader> readers = readers_of(path, keypoints);
  if (readers.empty()) throw Error(path.string(), kObjectForms, found_at(path));
  if (readers.size() > 1) {
    throw Error(path.string(), "labels in one form (name the file itself to choose: .json, .yaml or .csv)",
                join(readers, " and ", &NamedReader::form));
  }
  return std::move(readers.front().reader);
}

// The split that the options ask for: its exact name, or one that has a word for it, such as val2017.
std::string chosen_split(const std::vector<std::string>& existing, const std::string& where,
                         const ObjectSetOptions& options) {
  if (existing.empty() || std::ranges::find(existing, options.split) != existing.end())
    return existing.empty() ? "" : options.split;
  Splits splits{.where = where};
  for (const std::string& name : existing) {
    const std::string_view word = resembled_split(name);
    splits.existing.push_back(word.empty() ? name : std::string(word));
  }
  for (size_t i = 0; i < existing.size(); ++i) {
    if (std::ranges::count(splits.existing, splits.existing[i]) > 1) splits.existing[i] = existing[i];
  }
  const std::string chosen = choose_split(splits, {.split = options.split, .default_splits = options.default_splits});
  return existing[static_cast<size_t>(std::ranges::find(splits.existing, chosen) - splits.existing.begin())];
}

std::array<double, 4> cut_box(const std::array<double, 4>& box, double width, double height) {
  return {std::clamp(box[0], 0.0, width), std::clamp(box[1], 0.0, height), std::clamp(box[2], 0.0, width),
          std::clamp(box[3], 0.0, height)};
}

bool has_area(const std::array<double, 4>& box) { return box[2] > box[0] && box[3] > box[1]; }

double area_of(const std::array<double, 4>& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

std::string place_of(const ObjectSet& set, const LabelledImage& image, const LabelledObject& object) {
  return set.form == "COCO" ? str(set.where, ": annotation ", object.id) : str(image.path, ": object ", object.id);
}

// Cuts a box to its image; false: nothing remains.  Without mask, the area is that of the box.
bool cut_object(LabelledObject& object, double width, double height) {
  const std::array<double, 4> box = cut_box(object.box, width, height);
  if (!has_area(box)) return false;
  if (box != object.box && object.outline.empty()) object.area = area_of(box);
  object.box = box;
  return true;
}

void cut_objects(ObjectSet& set) {
  int64_t left_out = 0;
  std::string first;
  for (LabelledImage& image : set.images) {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    const double width = set.in_fractions ? 1 : image.width > 0 ? static_cast<double>(image.width) : kUnknown;
    const double height = set.in_fractions ? 1 : image.height > 0 ? static_cast<double>(image.height) : kUnknown;
    left_out += static_cast<int64_t>(std::erase_if(image.objects, [&](LabelledObject& object) {
      if (cut_object(object, width, height)) return false;
      if (first.empty()) {
        first =
            Error(place_of(set, image, object), "a box with an area in its image", "[" + join(object.box) + "]").what();
      }
      return true;
    }));
  }
  if (left_out > 0) warn(str(first, " (", counted(left_out, "such object"), " left out)"));
}

void require_images(const ObjectSet& set) {
  std::vector<std::string> missing;
  for (const LabelledImage& image : set.images) {
    std::error_code error;
    if (!fs::exists(image.path, error)) missing.push_back(image.path);
  }
  if (missing.empty()) return;
  throw Error(set.where, "its images",
              str("no file for ", missing.size(), " of ", set.images.size(), ", such as ", missing.front()));
}

}  // namespace

int64_t ObjectSet::object_count() const {
  int64_t count = 0;
  for (const LabelledImage& image : images) count += std::ssize(image.objects);
  return count;
}

bool is_object_set(const fs::path& path) { return !readers_of(path, false).empty(); }

std::vector<std::string> object_set_splits(const fs::path& path) { return reader_of(path, false)->splits(); }

ObjectSet open_object_set(const fs::path& path, const ObjectSetOptions& options) {
  const ObjectReaderPtr reader = reader_of(path, options.keypoints);
  const std::string split = chosen_split(reader->splits(), path.string(), options);
  ObjectSet set = reader->read(split, options);
  set.split = split;
  set.cut = options.cut;
  std::ranges::sort(set.images, {}, &LabelledImage::path);
  if (set.form != "COCO") {
    for (size_t i = 0; i < set.images.size(); ++i) set.images[i].id = static_cast<int64_t>(i);
    for (size_t i = 0; i < set.class_names.size(); ++i) set.category_ids.push_back(static_cast<int64_t>(i));
  }
  if (!options.without_images) require_images(set);
  if (options.cut) cut_objects(set);
  if (set.object_count() == 0)
    throw Error(set.where, "objects" + (split.empty() ? "" : " in the split " + split),
                set.images.empty() ? "no images" : counted(set.images.size(), "image") + " without any");
  return set;
}

std::vector<LabelledObject> objects_of(const ObjectSet& set, size_t index, int64_t width, int64_t height) {
  const LabelledImage& image = set.images.at(index);
  if (image.width > 0 && (image.width != width || image.height != height)) {
    throw Error(image.path, str("an image of ", image.width, "×", image.height, ", as in the labels"),
                str(width, "×", height));
  }
  std::vector<LabelledObject> objects = image.objects;
  const auto w = static_cast<double>(width), h = static_cast<double>(height);
  for (LabelledObject& object : objects) {
    if (set.in_fractions) {
      for (size_t i = 0; i < 4; ++i) object.box[i] *= i % 2 == 0 ? w : h;
      object.area *= w * h;
      for (std::vector<double>& polygon : object.outline.polygons) {
        for (size_t i = 0; i < polygon.size(); ++i) polygon[i] *= i % 2 == 0 ? w : h;
      }
      for (KeyPoint& point : object.keypoints) point = {point.x * w, point.y * h, point.visibility};
    } else if (set.cut && !cut_object(object, w, h)) {
      throw Error(place_of(set, image, object), str("a box in its image of ", width, "×", height),
                  "[" + join(object.box) + "]");
    }
  }
  return objects;
}

std::string summary(const ObjectSet& set, const std::string& name) {
  return str(counted(set.images.size(), "image"), " of ", name, set.split.empty() ? "" : "/" + set.split, " (",
             set.form, "): ", counted(set.object_count(), "object"), " of ",
             set.class_names.size() == 1 ? "1 class" : str(set.class_names.size(), " classes"));
}

std::vector<fs::path> files_with_ending(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->path().extension() == ending && !name.starts_with(".") && entry->is_regular_file(error))
      files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<SplitFile> files_of_split_folders(const fs::path& folder, const std::string& name) {
  std::vector<SplitFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string split = entry->path().filename().string();
    if (!canonical_split(split).empty() && fs::is_regular_file(entry->path() / name, error))
      files.push_back({split, entry->path() / name});
  }
  std::ranges::sort(files, {}, &SplitFile::split);
  return files;
}

std::vector<std::string> splits_of_files(const std::vector<SplitFile>& files) {
  if (files.size() == 1 && resembled_split(files.front().split).empty()) return {};
  std::vector<std::string> names;
  for (const SplitFile& file : files) names.push_back(file.split);
  return names;
}

}  // namespace vitrail::data
