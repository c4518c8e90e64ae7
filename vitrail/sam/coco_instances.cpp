// SPDX-License-Identifier: Apache-2.0
// Instance annotations in COCO's JSON (cocodataset.org, "Data format").
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/sam/instance_datasets_internal.h"
#include "vitrail/sam/outline_mask.h"
#include "vitrail/sam/polygon_mask.h"

namespace vitrail::sam {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = size_t{2} << 30;  // COCO's training set has 450 MB
constexpr int kMaxDepth = 8;

using Polygons = std::vector<std::vector<double>>;

struct Annotation {
  int64_t id = 0;
  json category = {};  // "category_id", as it is
  data::ObjectOutline outline = {};
};

struct CocoImage {
  std::string file;
  int64_t width = 0, height = 0;
  std::vector<Annotation> annotations = {};
};

std::string shown(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60); }

int64_t integer_of(const json& object, const char* key, const std::string& where) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) {
    throw Error(where, str("an object with the integer \"", key, "\""), shown(object));
  }
  return object[key].get<int64_t>();
}

const json& list_of(const json& object, const char* key, const std::string& where) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_array()) {
    throw Error(where, str("COCO's JSON, with the list \"", key, "\""), "none");
  }
  return object[key];
}

std::vector<double> polygon_of(const json& value, const std::string& where) {
  const bool numbers = value.is_array() && std::ranges::all_of(value, [](const json& v) { return v.is_number(); });
  if (!numbers) throw Error(where, "a polygon [x, y, …]", shown(value));
  return value.get<std::vector<double>>();
}

std::vector<uint32_t> runs_of(const json& counts, const std::string& where) {
  std::vector<uint32_t> runs;
  for (const json& count : counts) {
    if (!count.is_number_unsigned() || count.get<uint64_t>() > UINT32_MAX) {
      throw Error(where, "runs of at least 0 pixels", shown(count));
    }
    runs.push_back(count.get<uint32_t>());
  }
  return runs;
}

void check_size(const json& segmentation, const CocoImage& image, const std::string& where) {
  const json& size = list_of(segmentation, "size", where);
  if (size != json::array({image.height, image.width})) {
    throw Error(where, str("runs of the image's size [", image.height, ", ", image.width, "]"), shown(size));
  }
}

Annotation annotation_of(const json& object, const CocoImage& image, const std::string& where) {
  const json& segmentation = object["segmentation"];
  Annotation annotation{integer_of(object, "id", where), object.value("category_id", json())};
  if (segmentation.is_array()) {
    for (const json& polygon : segmentation) annotation.outline.polygons.push_back(polygon_of(polygon, where));
    return annotation;
  }
  check_size(segmentation, image, where);
  const json counts = segmentation.value("counts", json());
  if (counts.is_string()) {
    annotation.outline.coco_runs = counts.get<std::string>();
  } else if (counts.is_array()) {
    annotation.outline.runs = runs_of(counts, where);
  } else {
    throw Error(where, "\"counts\", a list or a text", shown(counts));
  }
  return annotation;
}

class CocoInstances : public InstanceDataset {
 public:
  CocoInstances(const json& document, std::string where, fs::path folder)
      : where_(std::move(where)), folder_(std::move(folder)) {
    read_categories(document);
    std::map<int64_t, CocoImage> images;
    for (const json& object : list_of(document, "images", where_)) add_image(object, images);
    for (const json& object : list_of(document, "annotations", where_)) add_annotation(object, images);
    if (bad_polygons_ > 0) warn(str(bad_polygon_, " (", counted(bad_polygons_, "such polygon"), " left out)"));
    for (auto& [id, image] : images) {
      if (image.annotations.empty()) {
        ++left_out_.images;
      } else {
        images_.push_back(std::move(image));
      }
    }
  }

  void set_folder(const fs::path& folder) { folder_ = folder; }
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  fs::path path(int64_t image) const override { return folder_ / images_.at(static_cast<size_t>(image)).file; }

  std::vector<Rle> masks(int64_t index, int64_t width, int64_t height) const override {
    std::vector<Rle> masks;
    const CocoImage& image = checked(index, width, height);
    for (const Annotation& annotation : image.annotations) {
      Rle mask = mask_of(annotation, image);
      if (area(mask) > 0) masks.push_back(std::move(mask));
    }
    return masks;
  }

  std::vector<std::string> class_names() const override {
    std::vector<std::string> names;
    for (const auto& [id, name] : categories_) names.push_back(name);
    return names;
  }

  std::vector<ClassMask> class_masks(int64_t index, int64_t width, int64_t height) const override {
    std::vector<ClassMask> masks;
    const CocoImage& image = checked(index, width, height);
    for (const Annotation& annotation : image.annotations) {
      Rle mask = mask_of(annotation, image);
      if (area(mask) > 0) masks.push_back({std::move(mask), class_of(annotation)});
    }
    return masks;
  }

 private:
  void read_categories(const json& document) {
    if (!document.is_object() || !document.contains("categories")) return;
    for (const json& object : list_of(document, "categories", where_)) {
      const int64_t id = integer_of(object, "id", where_ + ": categories");
      const std::string where = str(where_, ": category ", id);
      if (!object.contains("name") || !object["name"].is_string())
        throw Error(where, "the text \"name\"", shown(object));
      if (!categories_.emplace(id, object["name"].get<std::string>()).second)
        throw Error(where, "one category of this id", "several");
    }
  }

  int64_t class_of(const Annotation& annotation) const {
    const auto found = annotation.category.is_number_integer() ? categories_.find(annotation.category.get<int64_t>())
                                                               : categories_.end();
    if (found == categories_.end()) {
      throw Error(str(where_, ": annotation ", annotation.id), "the id of a category in \"category_id\"",
                  shown(annotation.category));
    }
    return std::distance(categories_.begin(), found);
  }

  const CocoImage& checked(int64_t index, int64_t width, int64_t height) const {
    const CocoImage& image = images_.at(static_cast<size_t>(index));
    if (image.width == width && image.height == height) return image;
    throw Error(path(index).string(), str("an image of ", image.width, "×", image.height, ", as ", where_, " says"),
                str(width, "×", height));
  }

  void add_image(const json& object, std::map<int64_t, CocoImage>& images) const {
    const int64_t id = integer_of(object, "id", where_ + ": images");
    const std::string where = str(where_, ": image ", id);
    if (!object.contains("file_name") || !object["file_name"].is_string()) {
      throw Error(where, "the text \"file_name\"", shown(object));
    }
    CocoImage image{object["file_name"].get<std::string>(), integer_of(object, "width", where),
                    integer_of(object, "height", where)};
    constexpr int64_t kMaxSide = 1 << 20;
    const bool possible = image.width > 0 && image.height > 0 && image.width <= kMaxSide && image.height <= kMaxSide;
    if (!possible) throw Error(where, "a width and a height of pixels", str(image.width, "×", image.height));
    if (!images.emplace(id, std::move(image)).second) throw Error(where, "one image of this id", "several");
  }

  void add_annotation(const json& object, std::map<int64_t, CocoImage>& images) {
    const std::string where = str(where_, ": annotation ", integer_of(object, "id", where_ + ": annotations"));
    const auto image = images.find(integer_of(object, "image_id", where));
    if (image == images.end()) throw Error(where, "the id of an image in \"image_id\"", shown(object["image_id"]));
    const json crowd = object.value("iscrowd", json(0));
    if (crowd == json(1) || crowd == json(true)) {
      ++left_out_.crowds;
    } else if (!object.contains("segmentation") || object["segmentation"].empty()) {
      ++left_out_.without_mask;
    } else {
      Annotation annotation = annotation_of(object, image->second, where);
      Polygons& polygons = annotation.outline.polygons;
      const bool has_polygons = !polygons.empty();
      leave_out_bad(polygons, image->second, where);
      if (has_polygons && polygons.empty()) {
        ++left_out_.without_mask;
      } else {
        image->second.annotations.push_back(std::move(annotation));
      }
    }
  }

  // Programs write lines and points among the polygons of an object.  The other polygons are its mask.
  void leave_out_bad(Polygons& polygons, const CocoImage& image, const std::string& where) {
    bad_polygons_ += static_cast<int64_t>(std::erase_if(polygons, [&](const std::vector<double>& polygon) {
      try {
        check_polygon(polygon, image.width, image.height, where);
        return false;
      } catch (const Error& error) {
        if (bad_polygon_.empty()) bad_polygon_ = error.what();
        return true;
      }
    }));
  }

  Rle mask_of(const Annotation& annotation, const CocoImage& image) const {
    return outline_mask(annotation.outline, image.width, image.height, str(where_, ": annotation ", annotation.id));
  }

  std::string where_;
  fs::path folder_;
  std::map<int64_t, std::string> categories_;  // names by id
  std::vector<CocoImage> images_;
  int64_t bad_polygons_ = 0;
  std::string bad_polygon_;  // why the first one is left out
};

// The folder of an annotation file's images: COCO keeps instances_NAME.json in a folder beside the folder NAME.
fs::path folder_of_images(const fs::path& file, const std::string& image) {
  const fs::path beside = file.parent_path();
  std::vector<fs::path> places{beside, beside / "images"};
  const std::string stem = file.stem().string(), prefix = "instances_";
  if (stem.starts_with(prefix)) places.push_back(beside / ".." / stem.substr(prefix.size()));
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::exists(place / image, error)) return place;
  }
  throw Error(file.string(), "its images beside it, or in a folder \"images\"",
              "no file " + join(places, ", ", [&](const fs::path& place) { return (place / image).string(); }));
}

std::unique_ptr<CocoInstances> parse(const std::string& text, const std::string& where, const fs::path& folder) {
  if (json_depth(text) > kMaxDepth) throw Error(where, "COCO's JSON", "more nesting");
  json document;
  try {
    document = json::parse(text);
  } catch (const json::exception& error) {
    throw Error(where, "COCO's JSON", json_fault(text, error));
  }
  return std::make_unique<CocoInstances>(document, where, folder);
}

}  // namespace

std::unique_ptr<const InstanceDataset> parse_coco_instances(const std::string& text, const std::string& where,
                                                            const fs::path& folder) {
  return parse(text, where, folder);
}

std::unique_ptr<const InstanceDataset> open_coco_instances(const fs::path& file) {
  auto dataset = parse(read_text_file(file, kMaxFileBytes), file.string(), "");
  if (dataset->size() > 0) dataset->set_folder(folder_of_images(file, dataset->path(0).string()));
  return dataset;
}

}  // namespace vitrail::sam
