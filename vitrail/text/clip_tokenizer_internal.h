// SPDX-License-Identifier: Apache-2.0
#pragma once
// CLIP's tokenizer: byte-level BPE of words.
#include "vitrail/text/bpe_files_internal.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

// Words by the pattern
//   's|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
// <|startoftext|> in front and <|endoftext|> behind.  transformers' CLIPTokenizer makes a text NFC, white space single
// spaces and letters lower case before.  OpenCLIP's SimpleTokenizer does not; its special tokens in a text are
// <start_of_text> and <end_of_text>, it ignores the case of the pattern and pads with 0.
class ClipTokenizer : public Tokenizer {
 public:
  // Throws Error naming `where` if the vocabulary lacks a special token.
  ClipTokenizer(BpeFile file, const std::string& where, ClipForm form);

  int64_t vocab_size() const override { return bpe_.size(); }

 private:
  std::vector<int64_t> encode_content(std::string_view text) const override;
  void encode_words(std::u32string_view normalized, std::vector<int64_t>& ids) const;
  void encode_special(std::u32string_view token, std::vector<int64_t>& ids) const;
  void encode_word(std::u32string_view word, std::vector<int64_t>& ids) const;

  Bpe bpe_;
  ClipForm form_;
  AddedTokens added_, added_normalized_;
  std::vector<int64_t> byte_ids_, last_byte_ids_;  // a byte's token inside a word, and at its end
};

}  // namespace vitrail::text
