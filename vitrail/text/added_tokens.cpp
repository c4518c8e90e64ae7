// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/text/added_tokens_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

std::string_view without_space_at_end(std::string_view text) {
  const std::u32string points = code_points(text);
  size_t kept = points.size();
  while (kept > 0 && is_white_space(points[kept - 1])) --kept;
  return text.substr(0, to_utf8(std::u32string_view(points).substr(0, kept)).size());
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, bool normalized,
                         const std::function<std::string(std::string_view)>& normalize) {
  for (AddedToken token : tokens) {
    if (token.normalized != normalized || token.content.empty()) continue;
    if (normalize) token.content = normalize(token.content);
    by_first_byte_[token.content.front()].push_back(token);
  }
  for (auto& [first, list] : by_first_byte_) {
    std::ranges::stable_sort(list, std::greater<>(), [](const AddedToken& token) { return token.content.size(); });
  }
}

std::vector<TextPart> AddedTokens::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t begin = 0;  // where the text after the last token begins
  for (size_t at = 0; at < text.size();) {
    const auto list = by_first_byte_.find(text[at]);
    const AddedToken* found = nullptr;
    if (list != by_first_byte_.end()) {
      const auto starts = [&](const AddedToken& token) { return text.substr(at).starts_with(token.content); };
      const auto token = std::ranges::find_if(list->second, starts);
      if (token != list->second.end()) found = &*token;
    }
    if (!found) {
      ++at;
      continue;
    }
    const std::string_view before = text.substr(begin, at - begin);
    const std::string_view kept = found->lstrip ? without_space_at_end(before) : before;
    if (!kept.empty()) parts.push_back({kept});
    parts.push_back({text.substr(at, found->content.size()), found->id});
    begin = at += found->content.size();
  }
  if (begin < text.size()) parts.push_back({text.substr(begin)});
  return parts;
}

}  // namespace vitrail::text
