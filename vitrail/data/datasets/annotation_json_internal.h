// SPDX-License-Identifier: Apache-2.0
#pragma once
// COCO's files of annotations: JSON whose values are checked when they are read.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vitrail::data {

// Throws Error naming the file or `where` for text that is no JSON, or deeply nested.
nlohmann::json parse_annotations(const std::string& text, const std::string& where);
nlohmann::json read_annotations(const std::filesystem::path& path);

// A value of a JSON object, with its place for errors.
class AnnotationObject {
 public:
  AnnotationObject(const nlohmann::json& value, std::string where);

  bool has(const char* key) const { return value_.contains(key); }
  const nlohmann::json& at(const char* key) const;
  int64_t integer(const char* key) const;
  int64_t integer_or(const char* key, int64_t preset) const { return has(key) ? integer(key) : preset; }
  std::string text(const char* key) const;
  std::vector<double> numbers(const char* key) const;
  std::vector<AnnotationObject> objects(const char* key) const;
  bool is_crowd() const;  // "iscrowd"; by default not

  // Throws Error naming the value.
  [[noreturn]] void fail(const char* key, const std::string& expected) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& value_;
  std::string where_;
};

// Numbers, each finite; `where` names them.
std::vector<double> json_numbers(const nlohmann::json& value, const std::string& where);

// A name in a file is one of a file in its folder.
std::string file_name_inside(const AnnotationObject& object, const std::string& folder);

}  // namespace vitrail::data
