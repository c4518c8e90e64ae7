// SPDX-License-Identifier: Apache-2.0
// Sets of objects in COCO's JSON (cocodataset.org, "Data format").
#include <algorithm>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/annotation_json_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/objects/object_reader_internal.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kCocoPrefixes[] = {"instances_", "person_keypoints_"};

// The stem of instances_val2017.json without what is before the name of the split.
std::string coco_name(const fs::path& file) {
  std::string stem = file.stem().string();
  for (const std::string_view prefix : kCocoPrefixes) {
    if (stem.starts_with(prefix)) return stem.substr(prefix.size());
  }
  return stem;
}

std::vector<SplitFile> with_prefix(const std::vector<fs::path>& files, std::string_view prefix) {
  std::vector<SplitFile> found;
  for (const fs::path& file : files) {
    if (file.stem().string().starts_with(prefix)) found.push_back({coco_name(file), file});
  }
  return found;
}

// Those in a folder of annotations: objects, or else files of no other kind of COCO's.
std::vector<SplitFile> files_in_annotations(const fs::path& folder, bool keypoints) {
  const std::vector<fs::path> files = files_with_ending(folder, ".json");
  for (const bool first : {true, false}) {
    if (auto found = with_prefix(files, kCocoPrefixes[first == keypoints ? 1 : 0]); !found.empty()) return found;
  }
  std::vector<SplitFile> found;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const bool is_other =
        std::ranges::any_of(std::initializer_list<const char*>{"panoptic_", "captions_", "stuff_", "image_info_"},
                            [&](const char* prefix) { return stem.starts_with(prefix); });
    if (!is_other) found.push_back({stem, file});
  }
  return found;
}

std::vector<SplitFile> coco_files(const fs::path& folder, bool keypoints) {
  if (auto found = files_in_annotations(folder / "annotations", keypoints); !found.empty()) return found;
  if (auto found = files_of_split_folders(folder, "_annotations.coco.json"); !found.empty()) return found;
  std::vector<SplitFile> found;
  for (const fs::path& file : files_with_ending(folder, ".json")) {
    const std::string stem = file.stem().string();
    const bool is_known = stem == "annotations" || stem == "_annotations.coco" || stem == "coco" ||
                          stem.starts_with("instances") || !canonical_split(stem).empty();
    if (is_known) found.push_back({coco_name(file), file});
  }
  return found;
}

ObjectOutline outline_of(const AnnotationObject& annotation) {
  ObjectOutline outline;
  if (!annotation.has("segmentation") || annotation.at("segmentation").empty()) return outline;
  const json& segmentation = annotation.at("segmentation");
  const std::string where = annotation.where() + ": segmentation";
  if (segmentation.is_array()) {
    for (const json& polygon : segmentation) outline.polygons.push_back(json_numbers(polygon, where));
    return outline;
  }
  const AnnotationObject runs(segmentation, where);
  if (runs.at("counts").is_string()) {
    outline.coco_runs = runs.text("counts");
    return outline;
  }
  for (const double run : runs.numbers("counts")) {
    if (run < 0 || run > UINT32_MAX || run != static_cast<double>(static_cast<uint32_t>(run)))
      runs.fail("counts", "runs of at least 0 pixels");
    outline.runs.push_back(static_cast<uint32_t>(run));
  }
  return outline;
}

std::vector<KeyPoint> keypoints_of(const AnnotationObject& annotation, size_t count) {
  std::vector<KeyPoint> points;
  if (!annotation.has("keypoints")) return points;
  const std::vector<double> values = annotation.numbers("keypoints");
  if (values.size() % 3 != 0 || (count > 0 && !values.empty() && values.size() != 3 * count)) {
    annotation.fail("keypoints", count > 0 ? str("x, y and visibility of ", counted(count, "point"))
                                           : "x, y and visibility of each point");
  }
  for (size_t i = 0; i < values.size(); i += 3)
    points.push_back({values[i], values[i + 1], static_cast<int>(std::clamp(values[i + 2], 0.0, 2.0))});
  return points;
}

class CocoParser {
 public:
  CocoParser(const json& document, const std::string& where) : file_(document, where) {
    set_.form = "COCO";
    set_.where = where;
    read_categories();
    read_images();
    for (const AnnotationObject& annotation : file_.objects("annotations")) add(annotation);
  }

  ObjectSet set() { return std::move(set_); }

 private:
  struct Category {
    std::string name;
    size_t keypoints = 0;
  };

  void read_categories() {
    for (const AnnotationObject& each : file_.objects("categories")) {
      std::vector<std::string> points;
      if (each.has("keypoints")) points = keypoint_names(each);
      if (!categories_.emplace(each.integer("id"), Category{each.text("name"), points.size()}).second)
        each.fail("id", "one of its own");
      if (set_.keypoint_names.empty()) set_.keypoint_names = std::move(points);
    }
    for (const auto& [id, category] : categories_) {
      set_.category_ids.push_back(id);
      set_.class_names.push_back(category.name);
    }
  }

  static std::vector<std::string> keypoint_names(const AnnotationObject& category) {
    const json& names = category.at("keypoints");
    const auto is_text = [](const json& name) { return name.is_string(); };
    if (!names.is_array() || !std::ranges::all_of(names, is_text)) category.fail("keypoints", "a list of names");
    return names.get<std::vector<std::string>>();
  }

  void read_images() {
    for (const AnnotationObject& each : file_.objects("images")) {
      LabelledImage image{.path = file_name_inside(each, "of the images"), .id = each.integer("id")};
      image.width = each.integer_or("width", 0);
      image.height = each.integer_or("height", 0);
      constexpr int64_t kMaxSide = 1 << 20;
      for (const auto& [key, side] : {std::pair{"width", image.width}, {"height", image.height}}) {
        if (each.has(key) && (side < 1 || side > kMaxSide)) each.fail(key, str("1 to ", kMaxSide, " pixels"));
      }
      if (!positions_.emplace(image.id, set_.images.size()).second) each.fail("id", "one of its own");
      set_.images.push_back(std::move(image));
    }
  }

  void add(const AnnotationObject& annotation) {
    const auto image = positions_.find(annotation.integer("image_id"));
    if (image == positions_.end()) annotation.fail("image_id", "the id of an image");
    const auto category = categories_.find(annotation.integer("category_id"));
    if (category == categories_.end()) annotation.fail("category_id", "the id of a category");
    const std::vector<double> box = annotation.numbers("bbox");
    if (box.size() != 4) annotation.fail("bbox", "[x, y, width, height]");
    LabelledObject object{.id = annotation.integer("id"),
                          .index = std::distance(categories_.begin(), category),
                          .box = {box[0], box[1], box[0] + box[2], box[1] + box[3]},
                          .area = box[2] * box[3],
                          .crowd = annotation.is_crowd(),
                          .outline = outline_of(annotation),
                          .keypoints = keypoints_of(annotation, category->second.keypoints)};
    if (annotation.has("area")) {
      if (!annotation.at("area").is_number()) annotation.fail("area", "a number");
      object.area = annotation.at("area").get<double>();
    }
    set_.images[image->second].objects.push_back(std::move(object));
  }

  AnnotationObject file_;
  ObjectSet set_;
  std::map<int64_t, Category> categories_;
  std::map<int64_t, size_t> positions_;  // positions of images by their ids
};

// The folder that has the image of this name.
fs::path folder_of_images(const SplitFile& file, const std::string& image) {
  const fs::path beside = file.path.parent_path(), above = beside / "..", name = coco_name(file.path);
  const std::vector<fs::path> places{
      beside, beside / "images", beside / name, above / name, above / "images" / name, above / "images", above};
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::is_regular_file(place / image, error)) return place.lexically_normal();
  }
  throw Error(file.path.string(),
              str("the image ", image, " beside it, or in a folder images or ", name.string(), " there or above"),
              "none");
}

class CocoReader : public ObjectReader {
 public:
  explicit CocoReader(std::vector<SplitFile> files) : files_(std::move(files)) {}

  std::vector<std::string> splits() const override { return splits_of_files(files_); }

  ObjectSet read(const std::string& split, const ObjectSetOptions& options) const override {
    const auto file = splits().empty() ? files_.begin() : std::ranges::find(files_, split, &SplitFile::split);
    ObjectSet set = CocoParser(read_annotations(file->path), file->path.string()).set();
    if (set.images.empty() || options.without_images) return set;
    const fs::path folder = folder_of_images(*file, set.images.front().path);
    for (LabelledImage& image : set.images) image.path = (folder / image.path).string();
    return set;
  }

 private:
  std::vector<SplitFile> files_;
};

}  // namespace

ObjectSet parse_coco_objects(const std::string& text, const std::string& where) {
  return CocoParser(parse_annotations(text, where), where).set();
}

ObjectReaderPtr coco_reader(const fs::path& path, bool keypoints) {
  std::error_code error;
  std::vector<SplitFile> files;
  if (fs::is_directory(path, error)) {
    files = coco_files(path, keypoints);
  } else if (path.extension() == ".json") {
    files = {{"", path}};
  }
  return files.empty() ? nullptr : std::make_unique<CocoReader>(std::move(files));
}

}  // namespace vitrail::data
