// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/tokenizer.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::text {
namespace {

// The beginning of a text, for messages.
std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  size_t size = 0;
  while (size < std::min(text.size(), kShown)) size += std::max<size_t>(utf8_length(text.substr(size)), 1);
  return str("\"", text.substr(0, size), size < text.size() ? "…\"" : "\"");
}

}  // namespace

std::vector<int64_t> Tokenizer::encode(std::string_view text, int64_t max_length) const {
  if (!is_utf8(text)) throw Error("text", "UTF-8", "\"" + escape_non_utf8(text.substr(0, 80)) + "\"");
  const std::vector<int64_t> content = encode_content(text);
  std::vector<int64_t> ids;
  if (special_.bos) ids.push_back(*special_.bos);
  const size_t special = ids.size() + 1;
  if (max_length < static_cast<int64_t>(special))
    throw Error("text", str("a context of at least ", special, " tokens"), str(max_length));
  const size_t kept = std::min(content.size(), static_cast<size_t>(max_length) - special);
  if (kept < content.size()) {
    warn(str(quoted(text), ": cut to the model's context of ", max_length, " tokens, from ", content.size() + special));
  }
  ids.insert(ids.end(), content.begin(), content.begin() + static_cast<std::ptrdiff_t>(kept));
  ids.push_back(special_.eos);
  return ids;
}

}  // namespace vitrail::text
