// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/pose/person_boxes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/text.h"

namespace vitrail::tasks {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kWhere = "boxes";
constexpr int kMaxBoxDepth = 8;

std::string shown_box(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80);
}

json parsed_boxes(std::string_view text) {
  if (json_depth(text) > kMaxBoxDepth) throw Error(kWhere, "COCO's JSON", "more nesting");
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw Error(kWhere, "COCO's JSON", json_fault(text, error));
  }
}

const json& objects_at(const json& document, const char* key) {
  static const json none = json::array();
  if (!document.contains(key)) return none;
  const json& list = document[key];
  if (!list.is_array() || !std::ranges::all_of(list, &json::is_object))
    throw Error(str(kWhere, ": ", key), "a list of objects", shown_box(list));
  return list;
}

// An id, which is a number or a text.  Numbers have no zeros in front.
std::string id_text(const json& id) {
  if (!id.is_string() && !id.is_number_integer()) throw Error(str(kWhere, ": an id"), "an integer", shown_box(id));
  const std::string text = id.is_string() ? id.get<std::string>() : id.dump();
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return digits ? text.substr(std::min(text.find_first_not_of('0'), text.size() - 1)) : text;
}

const json& required_at(const json& object, const char* key, const char* expected) {
  if (object.contains(key)) return object[key];
  throw Error(str(kWhere, ": ", key), expected, "none in " + shown_box(object));
}

std::array<double, 4> bbox_of(const json& object) {
  constexpr const char* kExpected = "[left, top, width, height] with a width and a height above 0";
  const json& values = required_at(object, "bbox", kExpected);
  if (!values.is_array() || values.size() != 4 || !std::ranges::all_of(values, &json::is_number))
    throw Error(str(kWhere, ": bbox"), kExpected, shown_box(values));
  const std::array<double, 4> box = values;
  const auto is_usable = [](double value) { return std::isfinite(value) && std::abs(value) < 1e6; };
  if (!std::ranges::all_of(box, is_usable) || !(box[2] > 0) || !(box[3] > 0))
    throw Error(str(kWhere, ": bbox"), kExpected, shown_box(values));
  return box;
}

double score_of(const json& object) {
  if (!object.contains("score") || object["score"].is_null()) return 1;
  if (!object["score"].is_number()) throw Error(str(kWhere, ": score"), "a number", shown_box(object["score"]));
  return object["score"];
}

// Whether the shorter path is the end of the other one.
bool is_same_file(const fs::path& a, const fs::path& b) {
  auto i = a.end(), j = b.end();
  while (i != a.begin() && j != b.begin()) {
    if (*--i != *--j) return false;
  }
  return !a.empty() && !b.empty();
}

}  // namespace

bool overlaps(const PersonBox& box, const image::ImageView& photo) {
  const auto& [left, top, width, height] = box.box;
  return left < static_cast<double>(photo.width()) && top < static_cast<double>(photo.height()) && left + width > 0 &&
         top + height > 0;
}

PersonBoxes::PersonBoxes(std::string_view text) {
  const json document = parsed_boxes(text);
  if (!document.is_object() && !document.is_array())
    throw Error(kWhere, "COCO's JSON: an object with \"annotations\", or a list of results", shown_box(document));
  const json results = document.is_array() ? json{{"annotations", document}} : document;
  std::map<std::string, std::string> files, labels;  // by id
  for (const json& image : objects_at(results, "images")) {
    const json& name = required_at(image, "file_name", "a text");
    if (!name.is_string()) throw Error(str(kWhere, ": file_name"), "a text", shown_box(name));
    images_.push_back(files[id_text(required_at(image, "id", "an integer"))] = name);
  }
  bool has_person = false;
  for (const json& category : objects_at(results, "categories")) {
    const json& name = required_at(category, "name", "a text");
    if (!name.is_string()) throw Error(str(kWhere, ": name"), "a text", shown_box(name));
    has_person |= (labels[id_text(required_at(category, "id", "an integer"))] = name) == "person";
  }
  required_at(results, "annotations", "a list of objects");
  for (const json& object : objects_at(results, "annotations")) {
    Entry entry;
    if (object.contains("category_id") && object["category_id"].is_number_integer())
      entry.box.category = object["category_id"];
    if (!labels.empty() && object.contains("category_id")) {
      const auto label = labels.find(id_text(object["category_id"]));
      if (label == labels.end())
        throw Error(str(kWhere, ": category_id"), "one of the categories", shown_box(object["category_id"]));
      if (has_person && label->second != "person") continue;
      entry.box.label = label->second;
    }
    if (object.contains("image_id")) {
      entry.image = id_text(object["image_id"]);
      const auto file = files.find(entry.image);
      if (!files.empty() && file == files.end())
        throw Error(str(kWhere, ": image_id"), "one of the images", shown_box(object["image_id"]));
      if (file != files.end()) entry.image = file->second;
    }
    entry.box.box = bbox_of(object);
    entry.box.score = score_of(object);
    entries_.push_back(std::move(entry));
  }
}

std::vector<PersonBox> PersonBoxes::of(const std::string& image) const {
  const fs::path path = image;
  const auto is_it = [&](const std::string& file) { return is_same_file(file, path); };
  if (!images_.empty() && std::ranges::none_of(images_, is_it))
    throw Error(kWhere, "an image of the name " + path.filename().string(), join_first(3, images_));
  const std::string id = id_text(path.stem().string());
  std::vector<PersonBox> boxes;
  for (const Entry& entry : entries_) {
    if (entry.image.empty() || (images_.empty() ? entry.image == id : is_it(entry.image))) boxes.push_back(entry.box);
  }
  return boxes;
}

}  // namespace vitrail::tasks
