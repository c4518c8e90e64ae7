// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/serve/http_error.h"
#include "vitrail/serve/ignoring_case_internal.h"
#include "vitrail/serve/target_internal.h"

namespace vitrail::serve {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string decoded(std::string_view text, bool plus_is_space) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      result += ' ';
    } else if (text[i] == '%') {
      const int high = text.size() - i > 2 ? hex_digit(text[i + 1]) : -1;
      const int low = text.size() - i > 2 ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0 || high + low == 0) throw HttpError(400, "the target has a damaged % escape");
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Calls add() for each piece between separators.
template <class Add>
void split(std::string_view text, char separator, Add add) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) add(text.substr(at, end - at));
    at = end + 1;
  }
}

// All of "/PATH?QUERY", and the end of "http://HOST/PATH?QUERY" (RFC 9112, section 3.2).
std::string_view path_and_query(std::string_view target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    const size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    if (begins_ignoring_case(target, scheme) && end > scheme.size()) return target.substr(end);
  }
  throw HttpError(400, "the target of a request begins with / or http://HOST");
}

}  // namespace

Target parse_target(std::string_view given) {
  const std::string_view target = path_and_query(given);
  Target result;
  const size_t mark = std::min(target.find('?'), target.size());
  split(target.substr(0, mark), '/', [&](std::string_view segment) { result.path.push_back(decoded(segment, false)); });
  split(target.substr(std::min(mark + 1, target.size())), '&', [&](std::string_view pair) {
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    result.query.emplace_back(decoded(pair.substr(0, equals), true), decoded(value, true));
  });
  return result;
}

}  // namespace vitrail::serve
