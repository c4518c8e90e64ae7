// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/json_checks_internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace vitrail {
namespace {

using nlohmann::json;

class ContentReader : public nlohmann::json_sax<json> {
 public:
  explicit ContentReader(const JsonBudget& budget) : budget_(budget) {}
  JsonContent& content() { return content_; }

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(json::number_integer_t) override { return count(); }
  bool number_unsigned(json::number_unsigned_t) override { return count(); }
  bool number_float(json::number_float_t, const std::string&) override { return count(); }
  bool string(std::string& text) override { return count(sizeof(text) + text.size()); }
  bool binary(json::binary_t&) override { return count(); }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return count(sizeof(json::object_t) + kAllocation);
  }
  bool key(std::string& name) override {
    content_.bytes += kTreeNode + sizeof(name) + name.size() + kAllocation;
    if (keys_.back().insert(name).second) return true;
    content_.repeated_key = name;
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return count(sizeof(json::array_t) + kAllocation); }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  static constexpr size_t kAllocation = 16;  // what malloc adds
  static constexpr size_t kTreeNode = 32;    // a node of std::map, beside what it holds
  static constexpr size_t kValuesPerCheck = 1 << 14;

  // A vector that grows holds room for twice its elements.
  bool count(size_t bytes = 0) {
    content_.bytes += 2 * sizeof(json) + bytes;
    if (++content_.values % kValuesPerCheck == 0 && budget_.check) budget_.check();
    return content_.values <= budget_.values && content_.bytes <= budget_.bytes;
  }

  const JsonBudget& budget_;
  JsonContent content_;
  std::vector<std::set<std::string>> keys_;  // one set for each open object
};

}  // namespace

int json_depth(std::string_view text) {
  int depth = 0, largest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      largest = std::max(largest, ++depth);
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return largest;
}

JsonContent json_content(std::string_view text, const JsonBudget& budget) {
  ContentReader reader(budget);
  static_cast<void>(json::sax_parse(text, &reader));
  return reader.content();
}

std::string json_fault(std::string_view text, const std::exception& error) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "nothing";
  const std::string message = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
  for (const std::string_view prefix : {" parse error at ", "] "}) {
    if (const size_t found = message.find(prefix); found != message.npos) return message.substr(found + prefix.size());
  }
  return message;
}

}  // namespace vitrail
