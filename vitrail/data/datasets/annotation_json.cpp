// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/annotation_json_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/read_file.h"

namespace vitrail::data {
namespace {

using nlohmann::json;

constexpr int kMaxAnnotationDepth = 64;
constexpr size_t kMaxAnnotationBytes = size_t{2} << 30;  // COCO's training set has 450 MB

std::string short_json(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
}

}  // namespace

json parse_annotations(const std::string& text, const std::string& where) {
  if (json_depth(text) > kMaxAnnotationDepth) throw Error(where, "COCO's annotations", "deeply nested JSON");
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw Error(where, "JSON", json_fault(text, error));
  }
}

json read_annotations(const std::filesystem::path& path) {
  return parse_annotations(read_text_file(path, kMaxAnnotationBytes), path.string());
}

AnnotationObject::AnnotationObject(const json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) throw Error(where_, "a JSON object", value.type_name());
}

const json& AnnotationObject::at(const char* key) const {
  const auto found = value_.find(key);
  if (found == value_.end()) throw Error(where_ + ": " + key, "a value", "none");
  return *found;
}

void AnnotationObject::fail(const char* key, const std::string& expected) const {
  throw Error(where_ + ": " + key, expected, short_json(at(key)));
}

int64_t AnnotationObject::integer(const char* key) const {
  if (!at(key).is_number_integer()) fail(key, "an integer");
  return at(key).get<int64_t>();
}

std::string AnnotationObject::text(const char* key) const {
  if (!at(key).is_string()) fail(key, "a text");
  return at(key).get<std::string>();
}

std::vector<double> AnnotationObject::numbers(const char* key) const {
  return json_numbers(at(key), where_ + ": " + key);
}

std::vector<AnnotationObject> AnnotationObject::objects(const char* key) const {
  const json& value = at(key);
  if (!value.is_array()) fail(key, "a list");
  std::vector<AnnotationObject> result;
  result.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) result.emplace_back(value[i], str(where_, ": ", key, "[", i, "]"));
  return result;
}

bool AnnotationObject::is_crowd() const {
  if (!has("iscrowd")) return false;
  const json& value = at("iscrowd");
  if (value.is_boolean()) return value.get<bool>();
  return integer("iscrowd") == 1;
}

std::vector<double> json_numbers(const json& value, const std::string& where) {
  const auto is_finite = [](const json& v) { return v.is_number() && std::isfinite(v.get<double>()); };
  if (!value.is_array() || !std::ranges::all_of(value, is_finite)) throw Error(where, "numbers", short_json(value));
  return value.get<std::vector<double>>();
}

std::string file_name_inside(const AnnotationObject& object, const std::string& folder) {
  const std::filesystem::path name = object.text("file_name");
  if (name.is_absolute() || std::ranges::find(name, "..") != name.end() || name.empty())
    throw Error(object.where() + ": file_name", "a file in the folder " + folder, name.string());
  return name.string();
}

}  // namespace vitrail::data
