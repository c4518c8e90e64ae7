// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "vitrail/hub/hub.h"

namespace vitrail::hub {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// The hub's rule for the name of an organisation or a repository.
bool is_valid_part(std::string_view part) {
  constexpr size_t kMaxLength = 96;
  if (part.empty() || part.size() > kMaxLength) return false;
  if (part.find("--") != part.npos || part.find("..") != part.npos) return false;
  if (std::string_view("-.").find(part.front()) != std::string_view::npos) return false;
  if (std::string_view("-.").find(part.back()) != std::string_view::npos) return false;
  return std::ranges::all_of(part, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

// A revision becomes a path below refs/.
bool is_valid_revision(std::string_view revision) {
  constexpr size_t kMaxLength = 200;
  if (revision.empty() || revision.size() > kMaxLength) return false;
  if (revision.front() == '/' || revision.back() == '/' || revision.front() == '-' || revision.front() == '.')
    return false;
  for (const std::string_view bad : {"..", "//", "/."}) {
    if (revision.find(bad) != revision.npos) return false;
  }
  return std::ranges::all_of(revision, [](char c) {
    return is_letter_or_digit(c) || std::string_view("-_./+").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::string to_string(const ModelName& name) {
  return name.repository + (name.revision == "main" ? "" : "@" + name.revision);
}

std::optional<ModelName> parse_name(const std::string& text) {
  std::string_view name_part = text;
  for (const std::string_view mark : {"hf-hub:", "hf_hub:", "hf://"}) {
    if (name_part.starts_with(mark)) name_part.remove_prefix(mark.size());
  }
  ModelName name;
  if (const size_t at = name_part.find('@'); at != name_part.npos) {
    name.revision = name_part.substr(at + 1);
    name_part = name_part.substr(0, at);
    if (!is_valid_revision(name.revision)) return std::nullopt;
  }
  const size_t slash = name_part.find('/');
  if (slash == name_part.npos || !is_valid_part(name_part.substr(0, slash)) ||
      !is_valid_part(name_part.substr(slash + 1)))
    return std::nullopt;
  std::error_code unreadable;
  const bool is_marked = text.find(':') != text.npos;
  if (!is_marked && std::filesystem::exists(std::string(name_part.substr(0, slash)), unreadable)) return std::nullopt;
  name.repository = name_part;
  return name;
}

}  // namespace vitrail::hub
