// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/objects/yaml_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

constexpr std::string_view kYamlBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kYamlBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kYamlBlanks) + 1);
}

// Calls `found` for each character outside of quotes, until it returns true; its position, or the text's size.
template <class Found>
size_t find_unquoted(std::string_view text, Found found) {
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (quote != '\0') {
      if (text[i] == quote) quote = '\0';
    } else if (found(i)) {
      return i;
    } else if ((text[i] == '"' || text[i] == '\'') &&
               (i == 0 || std::string_view(" \t[{,:").find(text[i - 1]) != std::string_view::npos)) {
      quote = text[i];  // elsewhere it is an apostrophe
    }
  }
  return text.size();
}

std::string_view without_comment(std::string_view line) {
  const size_t end = find_unquoted(
      line, [&](size_t i) { return line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'); });
  line = line.substr(0, end);
  return line.substr(0, line.find_last_not_of(kYamlBlanks) + 1);
}

// The colon behind a key.
size_t colon_in(std::string_view text) {
  return find_unquoted(text, [&](size_t i) {
    return text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\t');
  });
}

class YamlParser {
 public:
  YamlParser(std::string_view text, const std::string& where) : where_(where) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = without_comment(text.substr(begin, end - begin));
      begin = end + 1;
      const std::string_view content = trimmed(line);
      if (content.empty() || content == "---" || content == "..." || content.starts_with('%')) continue;
      lines_.push_back({number, static_cast<size_t>(content.data() - line.data()), content});
    }
  }

  std::map<std::string, YamlValue> document() {
    std::map<std::string, YamlValue> values;
    while (at_ < lines_.size()) {
      const Line& line = lines_[at_];
      const size_t colon = colon_in(line.content);
      if (line.indent > 0 || colon == line.content.size()) fail(line.number, "a line \"key: value\"", line.content);
      const std::string key = scalar(line.content.substr(0, colon), line.number);
      YamlValue value = value_of(trimmed(line.content.substr(colon + 1)), line.number);
      if (!values.emplace(key, std::move(value)).second) fail(line.number, "each key once", key);
    }
    return values;
  }

 private:
  struct Line {
    size_t number, indent;
    std::string_view content;
  };

  [[noreturn]] void fail(size_t line, const std::string& expected, std::string_view got) const {
    throw Error(str(where_, ":", line), expected, "'" + std::string(got.substr(0, 60)) + "'");
  }

  // What is behind a key in its line, and the lines below.
  YamlValue value_of(std::string_view after_key, size_t number) {
    ++at_;
    YamlValue value{.line = number};
    if (after_key.starts_with('[') || after_key.starts_with('{')) {
      std::string flow(after_key);
      const char end = after_key.front() == '[' ? ']' : '}';
      while (!flow.ends_with(end)) {
        if (at_ == lines_.size()) fail(number, str("a closing ", end), after_key);
        flow += " ";
        flow += lines_[at_++].content;
      }
      flow_items(std::string_view(flow).substr(1, flow.size() - 2), end == '}', value);
    } else if (!after_key.empty()) {
      value.text = scalar(after_key, number);
    } else {
      block_items(value);
    }
    return value;
  }

  void flow_items(std::string_view flow, bool is_map, YamlValue& value) {
    value.is_text = false;
    while (!trimmed(flow).empty()) {
      const size_t end = find_unquoted(flow, [&](size_t i) { return flow[i] == ','; });
      const std::string_view item = trimmed(flow.substr(0, end));
      flow.remove_prefix(std::min(end + 1, flow.size()));
      const size_t colon = is_map ? colon_in(item) : 0;
      if (item.empty() || (is_map && colon == item.size())) fail(value.line, is_map ? "key: value" : "a value", item);
      value.items.emplace_back(is_map ? scalar(item.substr(0, colon), value.line) : std::to_string(value.items.size()),
                               scalar(is_map ? item.substr(colon + 1) : item, value.line));
    }
  }

  // Items "- text" or lines "key: text" below a key; none: an empty text.
  void block_items(YamlValue& value) {
    const size_t first = at_;
    while (at_ < lines_.size()) {
      const Line& line = lines_[at_];
      const bool is_item = line.content == "-" || line.content.starts_with("- ");
      if (line.indent == 0 && !is_item) break;
      ++at_;
      value.is_text = false;
      if (line.indent != lines_[first].indent) continue;  // part of a deeper value
      if (is_item) {
        value.items.emplace_back(std::to_string(value.items.size()), scalar(line.content.substr(1), line.number));
        continue;
      }
      const size_t colon = colon_in(line.content);
      if (colon == line.content.size()) fail(line.number, "an item \"- value\" or \"key: value\"", line.content);
      value.items.emplace_back(scalar(line.content.substr(0, colon), line.number),
                               scalar(line.content.substr(colon + 1), line.number));
    }
  }

  // A text without its quotes.
  std::string scalar(std::string_view text, size_t number) const {
    text = trimmed(text);
    if (text.empty() || (text.front() != '"' && text.front() != '\'')) return std::string(text);
    const char quote = text.front();
    if (text.size() < 2 || text.back() != quote) fail(number, "a closing quote", text);
    std::string result;
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      const bool escapes = quote == '"' ? text[i] == '\\' : text[i] == '\'' && text[i + 1] == '\'';
      if (escapes && i + 2 < text.size()) ++i;
      result += text[i];
    }
    return result;
  }

  const std::string& where_;
  std::vector<Line> lines_;
  size_t at_ = 0;
};

}  // namespace

std::map<std::string, YamlValue> parse_yaml(std::string_view text, const std::string& where) {
  return YamlParser(text, where).document();
}

}  // namespace vitrail::data
