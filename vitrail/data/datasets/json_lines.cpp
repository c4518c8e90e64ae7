// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/json_lines_internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"

namespace vitrail::data {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxDepth = 64;  // values are written by recursion

std::string field_of(const ordered_json& object, const std::string& key) {
  const auto value = object.find(key);
  if (value == object.end() || value->is_null()) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

}  // namespace

JsonLinesReader::JsonLinesReader(std::string where, std::string_view text)
    : where_(std::move(where)), remaining_(text) {}

std::optional<CsvRow> JsonLinesReader::next() {
  if (first_) return std::exchange(first_, std::nullopt);
  std::string_view line;
  while (line.find_first_not_of(" \t\r") == line.npos) {
    if (remaining_.empty()) return std::nullopt;
    line = remaining_.substr(0, remaining_.find('\n'));
    remaining_.remove_prefix(std::min(line.size() + 1, remaining_.size()));
    ++line_;
  }
  const bool is_shallow = json_depth(line) <= kMaxDepth;
  const ordered_json object = is_shallow ? ordered_json::parse(line, nullptr, false) : ordered_json();
  if (!object.is_object()) throw Error(str(where_, ":", line_), "a JSON object", "something else");
  const bool is_first = keys_.empty();
  for (auto entry = object.begin(); is_first && entry != object.end(); ++entry) keys_.push_back(entry.key());
  CsvRow row{line_, {}};
  for (const std::string& key : keys_) row.fields.push_back(field_of(object, key));
  if (!is_first) return row;
  first_ = std::move(row);
  return CsvRow{line_, keys_};
}

}  // namespace vitrail::data
