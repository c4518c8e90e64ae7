// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/open_clip_text.h"

#include <algorithm>

#include "vitrail/text/canonical_text_internal.h"
#include "vitrail/text/fix_text_internal.h"
#include "vitrail/text/html_entities_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

// ftfy leaves the entities of text with "<", and may give new ones.
std::u32string basic_clean(std::string_view text) { return unescape_html(unescape_html(fix_text(code_points(text)))); }

std::u32string whitespace_clean(std::u32string_view text) {
  std::u32string result = with_single_spaces(text);
  if (result.starts_with(U' ')) result.erase(0, 1);
  return result;
}

}  // namespace

std::string clean_whitespace(std::string_view text) { return to_utf8(whitespace_clean(basic_clean(text))); }

std::string clean_lower(std::string_view text) { return to_utf8(lower_text(whitespace_clean(basic_clean(text)))); }

std::string clean_canonicalize(std::string_view text) {
  std::u32string spaced = basic_clean(text);
  std::ranges::replace(spaced, U'_', U' ');
  return to_utf8(whitespace_clean(lower_text(without_punctuation(spaced))));
}

}  // namespace vitrail::text
