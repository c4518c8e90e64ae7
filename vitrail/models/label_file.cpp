// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/label_file_internal.h"

#include <algorithm>
#include <map>
#include <optional>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/json_fields_internal.h"

namespace vitrail::models {
namespace {

using Names = std::vector<std::string>;

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

// Lines end with LF, CR LF or CR.
Names lines_of(const std::string& text) {
  Names lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  while (!lines.empty() && is_blank(lines.back())) lines.pop_back();
  return lines;
}

std::optional<size_t> index_in(const std::string& text) {
  const bool digits = !text.empty() && text.size() < 9 &&
                      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::optional<size_t>(std::stoul(text)) : std::nullopt;
}

std::optional<size_t> index_of(const Json& value) {
  if (value.is_number_unsigned()) return value.get<size_t>();
  return value.is_string() ? index_in(value.get_ref<const std::string&>()) : std::nullopt;
}

// The names of lines that have their own indices, from 0 or from 1: "2,bird", "2 bird", "2: bird".
std::optional<Names> indexed_names(const Names& lines) {
  std::map<size_t, std::string> names;
  for (const std::string& line : lines) {
    const size_t end = line.find_first_of(",:\t ");
    const auto index = index_in(line.substr(0, end));
    const size_t first = index && end != std::string::npos ? line.find_first_not_of(" \t", end + 1) : std::string::npos;
    if (first == std::string::npos || !names.emplace(*index, line.substr(first)).second) return std::nullopt;
  }
  const bool whole = names.size() >= 2 && names.begin()->first <= 1 &&
                     names.rbegin()->first - names.begin()->first + 1 == names.size();
  const auto is_first = [&](const auto& entry) { return entry.second == names.begin()->second; };
  if (!whole || std::ranges::all_of(names, is_first)) return std::nullopt;  // "1 euro", "2 euro" are names
  Names result;
  for (const auto& entry : names) result.push_back(entry.second);
  return result;
}

// The names without the blank lines.  classes: their number if it is known, else 0.
Names without_blank_lines(const Names& lines, const std::string& where, size_t classes) {
  Names names;
  std::vector<size_t> blank;  // line numbers
  for (size_t i = 0; i < lines.size(); ++i) {
    if (is_blank(lines[i])) {
      blank.push_back(i + 1);
    } else {
      names.push_back(lines[i]);
    }
  }
  if (blank.empty()) return names;
  if (classes == 0) warn(str(where, ": ", counted(blank.size(), "blank line"), " left out"));
  if (names.size() >= classes) return names;
  throw Error(where, str(classes, " class names, one per line"),
              str(names.size(), " and blank lines: ", join(blank).substr(0, 80)));
}

// {"0": "tench"}, {"tench": 0}, or Keras' {"0": ["n01440764", "tench"]}.  In id2label the keys are the indices.
Names names_by_index(const Json& map, const std::string& where, bool id2label) {
  Names names(map.size());
  std::vector<bool> seen(map.size(), false);
  const auto items = map.items();
  const bool keys =
      id2label && std::all_of(items.begin(), items.end(), [](const auto& i) { return index_in(i.key()); });
  const bool numbers = std::all_of(map.begin(), map.end(), [](const Json& v) { return v.is_number_unsigned(); });
  const bool by_label = numbers && !keys;
  for (const auto& [key, value] : map.items()) {
    const Json name = by_label ? Json(key) : value.is_array() && value.size() == 2 ? value[1] : value;
    const auto index = index_of(by_label ? value : Json(key));
    if (!index || *index >= names.size() || seen[*index] || !name.is_string()) {
      throw Error(where, str("each class from 0 to ", names.size() - 1, " once, with a name"),
                  str("\"", key.substr(0, 80), "\""));
    }
    names[*index] = name.get<std::string>();
    seen[*index] = true;
  }
  return names;
}

Names names_of_json(const Json& json, const std::string& where, bool id2label = false) {
  for (const std::string field : {"id2label", "label_names", "label2id"}) {
    if (!json.is_object() || !json.contains(field)) continue;
    return names_of_json(json[field], where + ": " + field, field == "id2label");
  }
  if (json.is_object()) return names_by_index(json, where, id2label);
  Names names;
  for (const Json& name : json) {
    if (!name.is_string()) throw Error(where, "a list of names", name.type_name());
    names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace

std::vector<std::string> parse_labels(std::string text, const std::string& where, size_t classes) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw Error(where, "text in UTF-8", "UTF-16 (save it as UTF-8)");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) {
    try {
      return names_of_json(parse_json(text, where), where);
    } catch (const Error&) {
      const bool lines = text[first] == '[' && text.find('\n') != std::string::npos;  // a name may begin with [
      if (!lines) throw;
    }
  }
  const Names names = without_blank_lines(lines_of(text), where, classes);
  const auto indexed = indexed_names(names);
  if (!indexed) return names;
  warn(where + ": uses the number at the beginning of each line as the index of the class");
  return *indexed;
}

}  // namespace vitrail::models
