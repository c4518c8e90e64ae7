// SPDX-License-Identifier: Apache-2.0
#pragma once
// The unigram language model (Kudo 2018, "Subword Regularization", section 3.1) of a tokenizer.json: T5's and XLM-R's,
// and those of OpenCLIP's SigLIP.
#include <string_view>
#include <unordered_map>

#include "vitrail/text/tokenizer.h"
#include "vitrail/text/unigram_file_internal.h"

namespace vitrail::text {

// Source: Hugging Face's tokenizers, src/models/unigram/model.rs.  The pieces of a word are those with the largest sum
// of scores, by the Viterbi algorithm.
class UnigramTokenizer : public Tokenizer {
 public:
  UnigramTokenizer(UnigramFile file, const std::string& where);  // throws Error for ids above 2³¹

  int64_t vocab_size() const override { return size_; }

 private:
  std::vector<int64_t> encode_content(std::string_view text) const override;
  // A part of the text between added tokens.  is_first: nothing precedes it.
  void encode_part(std::string_view text, bool is_first, std::vector<int64_t>& ids) const;
  void encode_word(std::string_view word, std::vector<int64_t>& ids) const;
  void add_unknown(std::string_view text, std::vector<int64_t>& ids) const;
  std::vector<std::string> words_of(const std::string& normalized, bool is_first) const;

  UnigramFile file_;
  std::unordered_map<std::string_view, int64_t> ids_;  // the ids of file_.pieces
  AddedTokens added_, added_normalized_;
  std::vector<int64_t> byte_ids_;  // the pieces "<0x00>" to "<0xFF>", if all are there
  size_t longest_ = 0;             // bytes of the longest piece
  double unknown_score_ = 0;
  int64_t size_ = 0;
};

}  // namespace vitrail::text
