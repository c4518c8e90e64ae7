// SPDX-License-Identifier: Apache-2.0
#pragma once
// CLIP's tokenizer: byte-level BPE of the words of a lower-case text.
#include "vitrail/text/bpe_files_internal.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

// Source: transformers' CLIPTokenizer.  NFC, white space as single spaces, lower case; words by the pattern
//   's|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
// <|startoftext|> in front and <|endoftext|> behind.  Not applied: ftfy and HTML entities, as OpenCLIP does, which
// change damaged text alone.
class ClipTokenizer : public Tokenizer {
 public:
  // Throws Error naming `where` if the vocabulary lacks a special token.
  ClipTokenizer(BpeFile file, const std::string& where);

  int64_t vocab_size() const override { return bpe_.size(); }

 private:
  std::vector<int64_t> encode_content(std::string_view text) const override;
  void encode_words(std::u32string_view normalized, std::vector<int64_t>& ids) const;
  void encode_word(std::u32string_view word, std::vector<int64_t>& ids) const;

  Bpe bpe_;
  AddedTokens added_, added_normalized_;
  std::vector<int64_t> byte_ids_, last_byte_ids_;  // a byte's token inside a word, and at its end
};

}  // namespace vitrail::text
