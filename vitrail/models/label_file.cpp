// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/label_file_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
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

std::optional<size_t> index_of(const Json& value) {
  if (value.is_number_unsigned()) return value.get<size_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const bool digits = !text.empty() && text.size() < 9 &&
                      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::optional<size_t>(std::stoul(text)) : std::nullopt;
}

// {"0": "tench"}, {"tench": 0}, or Keras' {"0": ["n01440764", "tench"]}.
Names names_by_index(const Json& map, const std::string& where) {
  Names names(map.size());
  std::vector<bool> seen(map.size(), false);
  const bool by_label = std::all_of(map.begin(), map.end(), [](const Json& v) { return v.is_number_unsigned(); });
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

Names names_of_json(const Json& json, const std::string& where) {
  for (const char* field : {"id2label", "label_names", "label2id"}) {
    if (json.is_object() && json.contains(field)) return names_of_json(json[field], where + ": " + field);
  }
  if (json.is_object()) return names_by_index(json, where);
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
  Names names = lines_of(text);
  if (names.size() > classes) std::erase_if(names, is_blank);
  return names;
}

}  // namespace vitrail::models
