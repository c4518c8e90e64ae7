// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/html_entities_internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "vitrail/text/text_tables_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

using Json = nlohmann::json;

constexpr char32_t kLastCodePoint = 0x10ffff;

struct Entities {
  std::unordered_map<std::u32string, std::u32string> names;     // "amp;", and "amp" where HTML allows it
  std::unordered_map<std::u32string, std::u32string> capitals;  // ftfy's "EACUTE;"
};

const Entities& entities() {
  static const Entities table = [] {
    const Json json = text_table("html_entities");
    Entities result;
    const auto text_of = [](const Json& value) { return code_points(value.get<std::string>()); };
    for (const auto& [name, text] : json["names"].items()) result.names[code_points(name + ";")] = text_of(text);
    for (const auto& [name, text] : json["capitals"].items()) result.capitals[code_points(name + ";")] = text_of(text);
    for (const Json& name : json["without_semicolon"]) {
      result.names[text_of(name)] = result.names.at(text_of(name) + U";");
    }
    return result;
  }();
  return table;
}

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char32_t c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_alphanumeric(char32_t c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_in_name(char32_t c) { return std::u32string_view(U"\t\n\f <&#;").find(c) == std::u32string_view::npos; }

// Control characters and noncharacters, which a reference must not name.
bool is_invalid(char32_t c) {
  return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || (c >= 0x7f && c <= 0x9f) ||
         (c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe;
}

std::u32string numbered(char32_t c) {
  if (c >= 0x80 && c <= 0x9f) return {without_c1(c)};
  if (c == 0 || (c >= 0xd800 && c <= 0xdfff) || c > kLastCodePoint) return U"\ufffd";
  return is_invalid(c) ? std::u32string() : std::u32string{c};
}

// The length of the beginning of a text whose characters have a property.
template <typename Property>
size_t span_of(std::u32string_view text, Property has) {
  return static_cast<size_t>(std::ranges::find_if_not(text, has) - text.begin());
}

struct Reference {
  size_t length = 0;  // in the text, with "&"
  std::u32string characters{};
};

// "&#228;" or "&#xe4;" at the beginning of a text.
std::optional<Reference> number_at(std::u32string_view text) {
  const bool hex = text.starts_with(U"&#x") || text.starts_with(U"&#X");
  const size_t first = hex ? 3 : 2;
  const size_t count = span_of(text.substr(first), hex ? is_hex_digit : is_digit);
  if (count == 0) return {};
  char32_t value = 0;
  for (const char32_t c : text.substr(first, count)) {
    const char32_t digit = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
    value = std::min(value * (hex ? 16 : 10) + digit, kLastCodePoint + 1);
  }
  const size_t end = first + count;
  return Reference{end + (text.substr(end).starts_with(U';') ? 1 : 0), numbered(value)};
}

// "&amp;" at the beginning of a text: the longest known name, without a semicolon where HTML allows it.
std::optional<Reference> name_at(std::u32string_view text) {
  constexpr size_t kMaxName = 32;
  std::u32string name(text.substr(1, span_of(text.substr(1, kMaxName), is_in_name)));
  if (name.empty()) return {};
  if (text.substr(1 + name.size()).starts_with(U';')) name += U';';
  for (; name.size() > 1; name.pop_back()) {
    const auto found = entities().names.find(name);
    if (found != entities().names.end()) return Reference{1 + name.size(), found->second};
  }
  return {};
}

std::optional<Reference> reference_at(std::u32string_view text) {
  return text.starts_with(U"&#") ? number_at(text) : name_at(text);
}

std::optional<Reference> complete_reference_at(std::u32string_view text) {
  constexpr size_t kMaxName = 24;
  const bool number = text.starts_with(U"&#");
  const size_t first = number ? 2 : 1, count = span_of(text.substr(first), is_alphanumeric), end = first + count;
  if (count == 0 || count > kMaxName || !text.substr(end).starts_with(U';')) return {};
  if (number) {
    const auto reference = number_at(text);
    // The whole of it must be a number; ftfy leaves a semicolon's.
    return reference && reference->length == end + 1 && reference->characters != U";" ? reference : std::nullopt;
  }
  const std::u32string name(text.substr(1, end));
  for (const auto* table : {&entities().names, &entities().capitals}) {
    const auto found = table->find(name);
    if (found != table->end()) return Reference{end + 1, found->second};
  }
  return {};
}

template <typename Find>
std::u32string unescaped(std::u32string_view text, Find find) {
  std::u32string result;
  while (!text.empty()) {
    const size_t plain = std::min(text.find(U'&'), text.size());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::optional<Reference> reference = find(text);
    result += reference ? reference->characters : U"&";
    text.remove_prefix(reference ? reference->length : 1);
  }
  return result;
}

}  // namespace

std::u32string unescape_html(std::u32string_view text) { return unescaped(text, reference_at); }

std::u32string unescape_complete_entities(std::u32string_view text) { return unescaped(text, complete_reference_at); }

char32_t without_c1(char32_t c) {
  // 0x81, 0x8d, 0x8f, 0x90 and 0x9d have no character there.
  constexpr std::u32string_view kWindows1252 =
      U"\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f"
      U"\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";
  return c >= 0x80 && c <= 0x9f ? kWindows1252[c - 0x80] : c;
}

}  // namespace vitrail::text
