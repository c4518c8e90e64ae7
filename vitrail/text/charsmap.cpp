// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/text/charsmap_internal.h"
#include "vitrail/text/unicode_internal.h"

static_assert(std::endian::native == std::endian::little);

namespace vitrail::text {
namespace {

// The fields of a unit (Darts-clone, include/darts.h).
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffff; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ff; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

Charsmap::Charsmap(const std::string& bytes, const std::string& where) {
  uint32_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (size == 0 || size % sizeof(uint32_t) != 0 || size > bytes.size() - sizeof size) {
    throw Error(where, "the size of a trie and its units", str(bytes.size(), " bytes"));
  }
  units_.resize(size / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof size, size);
  replacements_ = bytes.substr(sizeof size + size);
  if (!is_utf8(replacements_)) throw Error(where, "replacements in UTF-8", "other bytes");
  constexpr size_t kMaxReplacement = 256;  // NFKC's longest has 33 bytes
  for (size_t at = 0; at < replacements_.size();) {
    const size_t end = std::min(replacements_.find('\0', at), replacements_.size());
    if (end - at > kMaxReplacement)
      throw Error(where, str("replacements of at most ", kMaxReplacement, " bytes"), str(end - at));
    at = end + 1;
  }
  replacements_ += '\0';
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  uint32_t node = offset_of(units_.front());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    const size_t begin = node < units_.size() ? value_of(units_[node]) : replacements_.size();
    if (begin >= replacements_.size()) return std::nullopt;
    return std::string_view(replacements_.data() + begin);  // up to its zero byte
  }
  return std::nullopt;
}

std::string Charsmap::normalize(std::string_view text) const {
  constexpr size_t kMaxCluster = 5;
  std::string result;
  for (const std::string_view cluster : grapheme_clusters(text)) {
    const auto whole = cluster.size() <= kMaxCluster ? find(cluster) : std::nullopt;
    if (whole) {
      result += *whole;
      continue;
    }
    for (size_t at = 0; at < cluster.size();) {
      const std::string_view character = cluster.substr(at, utf8_length(cluster.substr(at)));
      result += find(character).value_or(character);
      at += character.size();
    }
  }
  return result;
}

}  // namespace vitrail::text
