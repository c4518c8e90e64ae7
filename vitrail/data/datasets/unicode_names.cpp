// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/unicode_names_internal.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

namespace vitrail::data {
namespace {

// utf8proc's mapping with these options; the text itself if it is not UTF-8.
std::string mapped(std::string_view text, int options) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(options));
  if (length < 0) return std::string(text);
  std::string copy(reinterpret_cast<const char*>(result), static_cast<size_t>(length));
  std::free(result);
  return copy;
}

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string composed(std::string_view text) { return mapped(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE); }

std::string comparison_key(std::string_view name) {
  std::string text = mapped(name, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c == '_' ? ' ' : ascii_lower(c); });
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace vitrail::data
