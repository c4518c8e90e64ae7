// SPDX-License-Identifier: Apache-2.0
#pragma once
// SigLIP 2's tokenizer: Gemma's BPE of characters, of a lower-case text.
#include "vitrail/text/bpe_files_internal.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

// Source: transformers' Siglip2Tokenizer, with <eos> behind and padding with <pad> as in the training of the models
// (Tschannen et al. 2025, "SigLIP 2", section 2.1; big_vision's tokenize(bos="no", eos="sticky")).
// Lower case, "▁" for spaces; characters that are no token become the tokens of their bytes, "<0xE2>".
class GemmaTokenizer : public Tokenizer {
 public:
  // Throws Error naming `where` if the vocabulary lacks a special token.
  GemmaTokenizer(BpeFile file, const std::string& where);

  int64_t vocab_size() const override { return bpe_.size(); }

 private:
  std::vector<int64_t> encode_content(std::string_view text) const override;
  void encode_text(std::string_view text, std::vector<int64_t>& ids) const;
  std::vector<int64_t> symbols_of(std::string_view normalized) const;

  Bpe bpe_;
  AddedTokens added_, added_normalized_;
  std::vector<int64_t> byte_ids_;  // the tokens "<0x00>" to "<0xFF>"
};

}  // namespace vitrail::text
