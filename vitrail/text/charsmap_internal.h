// SPDX-License-Identifier: Apache-2.0
#pragma once
// SentencePiece's precompiled character map: a double-array trie of the sequences that are replaced, and what replaces
// them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

// Immutable.  Sources: sentencepiece/src/normalizer.cc (the format), tokenizers/src/normalizers/precompiled.rs (what is
// replaced: a grapheme cluster of at most 5 bytes as a whole, otherwise each character).
class Charsmap {
 public:
  // The bytes of precompiled_charsmap.  Throws Error naming `where` for malformed ones.
  Charsmap(const std::string& bytes, const std::string& where);
  std::string normalize(std::string_view text) const;  // text is UTF-8

 private:
  // What replaces a text: the value of its shortest beginning in the trie.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace vitrail::text
