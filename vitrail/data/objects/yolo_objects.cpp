// SPDX-License-Identifier: Apache-2.0
// Sets of objects as YOLO's programs read them (docs.ultralytics.com/datasets).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/folder_walk_internal.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/data/datasets/list_columns_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/objects/object_reader_internal.h"
#include "vitrail/data/objects/yaml_internal.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// The lines of a text without blanks around them; empty ones too.
std::vector<std::string> label_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t first = std::min(line.find_first_not_of(" \t\r"), line.size());
    lines.push_back(line.substr(first, line.find_last_not_of(" \t\r") + 1 - first));
    begin = end + 1;
  }
  return lines;
}

// SET/images/a/x.jpg → SET/labels/a/x.txt; without a folder images, beside the image.
fs::path labels_of_image(const fs::path& image) {
  std::vector<fs::path> parts(image.begin(), image.end());
  for (size_t i = parts.size() - 1; i-- > 0;) {
    if (parts[i] != "images") continue;
    parts[i] = "labels";
    break;
  }
  fs::path labels;
  for (const fs::path& part : parts) labels /= part;
  return labels.replace_extension(".txt");
}

std::vector<double> label_values(const std::string& line, const std::string& where) {
  std::vector<double> values;
  const char *at = line.data(), *const end = at + line.size();
  while (at != end) {
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    const bool is_number =
        error == std::errc() && std::isfinite(value) && (next == end || *next == ' ' || *next == '\t');
    if (!is_number) throw Error(where, "a class and numbers", "'" + line.substr(0, 60) + "'");
    values.push_back(value);
    at = std::find_if(next, end, [](char c) { return c != ' ' && c != '\t'; });
  }
  return values;
}

// Rounding may lead out of the image by little.
void require_fraction(double value, const std::string& where) {
  constexpr double kRounded = 0.01;
  if (!(value >= -kRounded && value <= 1 + kRounded))
    throw Error(where, "fractions of the image's width and height, from 0 to 1", str(value));
}

class YoloLine {
 public:
  YoloLine(const std::string& line, const std::string& where, int64_t classes, const std::vector<int64_t>& shape)
      : where_(where), values_(label_values(line, where)) {
    const double index = values_.front();
    if (index < 0 || index >= static_cast<double>(classes) || index != std::floor(index)) {
      throw Error(where, str("a class from 0 to ", classes - 1), str(index));
    }
    object_.index = static_cast<int64_t>(index);
    values_.erase(values_.begin());
    if (!shape.empty()) {
      add_keypoints(static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]));
    } else if (values_.size() >= 6 && values_.size() % 2 == 0) {
      add_polygon();
    } else if (values_.size() == 4) {
      add_box();
    } else {
      throw Error(where, "a class, and x, y, width and height or the corners of a polygon",
                  str("a class and ", counted(values_.size(), "number")));
    }
    object_.area = (object_.box[2] - object_.box[0]) * (object_.box[3] - object_.box[1]);
  }

  LabelledObject object() { return std::move(object_); }

 private:
  void add_box() {
    for (size_t i = 0; i < 4; ++i) require_fraction(values_[i], where_);
    const double x = values_[0], y = values_[1], width = values_[2], height = values_[3];
    object_.box = {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
  }

  void add_keypoints(size_t count, size_t size) {
    if (values_.size() != 4 + count * size) {
      throw Error(where_, str("a class, a box and ", count, " key points of ", size, " numbers, as kpt_shape says"),
                  str("a class and ", counted(values_.size(), "number")));
    }
    add_box();
    for (size_t i = 4; i < values_.size(); i += size) {
      const double x = values_[i], y = values_[i + 1];
      const int visibility = size == 3        ? static_cast<int>(std::clamp(values_[i + 2], 0.0, 2.0))
                             : x > 0 || y > 0 ? 2
                                              : 0;
      if (visibility > 0) {
        require_fraction(x, where_);
        require_fraction(y, where_);
      }
      object_.keypoints.push_back({x, y, visibility});
    }
  }

  void add_polygon() {
    for (const double value : values_) require_fraction(value, where_);
    object_.box = {values_[0], values_[1], values_[0], values_[1]};
    for (size_t i = 0; i < values_.size(); ++i) {
      object_.box[i % 2] = std::min(object_.box[i % 2], values_[i]);
      object_.box[2 + i % 2] = std::max(object_.box[2 + i % 2], values_[i]);
    }
    object_.outline.polygons.push_back(values_);
  }

  const std::string& where_;
  std::vector<double> values_;
  LabelledObject object_;
};

class YoloReader : public ObjectReader {
 public:
  explicit YoloReader(const fs::path& file)
      : where_(file.string()), root_(file.parent_path()), values_(parse_yaml(read_text_file(file), where_)) {
    std::error_code error;
    if (const auto path = values_.find("path");
        path != values_.end() && fs::is_directory(root_ / path->second.text, error))
      root_ /= path->second.text;
    read_names();
    read_keypoint_shape();
    for (const auto& [key, value] : values_) {
      const bool is_given =
          value.is_text ? !value.text.empty() && value.text != "null" && value.text != "~" : !value.items.empty();
      if (is_given && !canonical_split(key).empty()) splits_.push_back(key);
    }
    if (splits_.empty()) throw Error(where_, "a key train, val or test with images", "none");
  }

  std::vector<std::string> splits() const override { return splits_; }

  ObjectSet read(const std::string& split, const ObjectSetOptions& options) const override {
    ObjectSet set{.form = "YOLO", .where = where_, .class_names = names_, .in_fractions = true};
    const YamlValue& value = values_.at(split);
    std::vector<std::string> sources;
    if (value.is_text) sources.push_back(value.text);
    for (const auto& [key, source] : value.items) sources.push_back(source);
    size_t with_labels = 0;
    for (const std::string& source : sources) {
      for (const std::string& path : images_of(source, str(where_, ":", value.line))) {
        LabelledImage image{.path = path, .id = std::ssize(set.images)};
        const fs::path labels = labels_of_image(path);
        std::error_code error;
        if (fs::exists(labels, error)) {
          image.objects =
              parse_yolo_labels(read_text_file(labels), labels.string(), std::ssize(names_), keypoint_shape_);
          ++with_labels;
        }
        set.images.push_back(std::move(image));
      }
    }
    if (with_labels == 0 && !set.images.empty()) {
      const std::string& image = set.images.front().path;
      throw Error(image, "labels of this or another image of its split", "no file " + labels_of_image(image).string());
    }
    if (!options.without_images) tell_other_labels(set, split);
    return set;
  }

 private:
  void read_names() {
    const auto names = values_.find("names"), count = values_.find("nc");
    if (names == values_.end() && count == values_.end())
      throw Error(where_, "the names of the classes, \"names: [cat, dog]\"", "none");
    const int64_t number = count == values_.end() ? 0 : list_integer(count->second.text).value_or(-1);  // 0: not given
    if (count != values_.end() && (number < 1 || number > kMaxClasses))
      throw Error(str(where_, ":", count->second.line, ": nc"), "a number of classes", "'" + count->second.text + "'");
    if (names == values_.end()) {
      for (int64_t i = 0; i < number; ++i) names_.push_back(std::to_string(i));
      return;
    }
    const std::string where = str(where_, ":", names->second.line, ": names");
    names_.resize(names->second.items.size());
    std::vector<bool> known(names_.size());
    for (const auto& [key, name] : names->second.items) {
      const std::optional<int64_t> index = list_integer(key);
      if (!index || *index < 0 || *index >= std::ssize(names_) || known[static_cast<size_t>(*index)])
        throw Error(where, str("the indices 0 to ", names_.size() - 1, ", each once"), "'" + key + "'");
      known[static_cast<size_t>(*index)] = true;
      names_[static_cast<size_t>(*index)] = name;
    }
    if (names_.empty()) throw Error(where, "a list of names, [cat, dog]", "'" + names->second.text + "'");
    if (number > 0 && number != std::ssize(names_))
      throw Error(where, counted(number, "name") + ", as nc says", str(names_.size()));
  }

  void read_keypoint_shape() {
    const auto shape = values_.find("kpt_shape");
    if (shape == values_.end()) return;
    for (const auto& [key, value] : shape->second.items) keypoint_shape_.push_back(list_integer(value).value_or(0));
    constexpr int64_t kMaxPoints = 1000;
    if (keypoint_shape_.size() != 2 || keypoint_shape_[0] < 1 || keypoint_shape_[0] > kMaxPoints ||
        (keypoint_shape_[1] != 2 && keypoint_shape_[1] != 3)) {
      throw Error(str(where_, ":", shape->second.line, ": kpt_shape"), "[points, 2 or 3]",
                  "[" + join(keypoint_shape_) + "]");
    }
  }

  // The images of a folder, or of a list in a text file.
  std::vector<std::string> images_of(const std::string& source, const std::string& where) const {
    std::error_code error;
    fs::path path = root_ / source;
    // Roboflow writes "../train/images" for SET/train/images.
    constexpr std::string_view kUp = "../";
    if (!fs::exists(path, error) && source.starts_with(kUp)) path = root_ / source.substr(kUp.size());
    path = path.lexically_normal();
    if (fs::is_directory(path, error)) return list_images(path);
    if (path.extension() != ".txt" || !fs::exists(path, error))
      throw Error(where, "a folder of images, or a text file that lists them", path.string() + ", which is none");
    std::vector<std::string> images;
    for (const std::string& line : label_lines(read_text_file(path))) {
      if (line.empty()) continue;
      const fs::path beside = path.parent_path() / line;
      images.push_back((fs::exists(beside, error) ? beside : root_ / line).lexically_normal().string());
    }
    return images;
  }

  // Labels without images may be those of another set.
  static void tell_other_labels(const ObjectSet& set, const std::string& split) {
    std::set<std::string> known, folders;
    for (const LabelledImage& image : set.images) {
      const fs::path labels = labels_of_image(image.path);
      known.insert(labels.string());
      if (labels.parent_path() != fs::path(image.path).parent_path()) folders.insert(labels.parent_path().string());
    }
    std::vector<std::string> others;
    for (const std::string& folder : folders) {
      for (const fs::path& file : files_with_ending(folder, ".txt")) {
        if (file.filename() != "classes.txt" && !known.contains(file.string())) others.push_back(file.string());
      }
    }
    if (!others.empty()) {
      warn(str(others.front(), ": no image of the split ", split, " has this name (", counted(others.size(), "file"),
               " of labels left out)"));
    }
  }

  static constexpr int64_t kMaxClasses = 1'000'000;
  std::string where_;
  fs::path root_;
  std::map<std::string, YamlValue> values_;
  std::vector<std::string> names_, splits_;
  std::vector<int64_t> keypoint_shape_;
};

}  // namespace

std::vector<LabelledObject> parse_yolo_labels(const std::string& text, const std::string& where, int64_t classes,
                                              const std::vector<int64_t>& keypoint_shape) {
  std::vector<LabelledObject> objects;
  size_t number = 0;
  for (const std::string& line : label_lines(text)) {
    ++number;
    if (line.empty()) continue;
    objects.push_back(YoloLine(line, str(where, ":", number), classes, keypoint_shape).object());
    objects.back().id = static_cast<int64_t>(number);
  }
  return objects;
}

ObjectReaderPtr yolo_reader(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const bool is_yaml = path.extension() == ".yaml" || path.extension() == ".yml";
    return is_yaml ? std::make_unique<YoloReader>(path) : nullptr;
  }
  for (const char* name : {"data.yaml", "data.yml", "dataset.yaml", "dataset.yml"}) {
    if (fs::exists(path / name, error)) return std::make_unique<YoloReader>(path / name);
  }
  return nullptr;
}

}  // namespace vitrail::data
