// SPDX-License-Identifier: Apache-2.0
#pragma once
// SigLIP's tokenizer: SentencePiece (Kudo & Richardson 2018) of a text without punctuation.
#include "vitrail/text/sentencepiece_module_internal.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

// Source: transformers' SiglipTokenizer.  Lower case, ASCII punctuation removed, white space as single spaces; </s>
// behind, and padding with </s>.  Special tokens that a text contains literally are text.
class SiglipTokenizer : public Tokenizer {
 public:
  explicit SiglipTokenizer(const std::filesystem::path& file);  // spiece.model; throws Error

  int64_t vocab_size() const override { return module_.size(model_.get()); }

 private:
  std::vector<int64_t> encode_content(std::string_view text) const override;
  std::vector<int64_t> pieces_of(const std::string& text) const;

  const SentencePieceModule& module_;
  std::unique_ptr<void, void (*)(void*)> model_;
  size_t prefix_pieces_;  // the number of kPrefix's pieces
};

}  // namespace vitrail::text
