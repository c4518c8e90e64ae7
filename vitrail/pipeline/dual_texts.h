// SPDX-License-Identifier: Apache-2.0
#pragma once
// The texts of a dual model (CLIP, SigLIP) as token ids.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/models/load.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail {

// Thread-safe.
class DualTexts {
 public:
  // opened.config.text is set.  tokenizer: a file or folder for text::open_tokenizer(), by default the model's folder.
  // Throws Error for a tokenizer that is not the model's.
  explicit DualTexts(const models::OpenedModel& opened, const std::filesystem::path& tokenizer = {});

  // The ids of a text in UTF-8, with special tokens and without padding.  A text longer than the model's context is
  // cut, with a warning.  Throws Error naming `where` for one without tokens.
  std::vector<int64_t> token_ids(const std::string& text, const std::string& where) const;
  // Throws Error naming `where` for no ids, for more than the context has, for one beyond the vocabulary, and without
  // the token that ends a text.
  void check(const std::vector<int64_t>& ids, const std::string& where) const;
  // The ids of T texts as the text tower takes them: [T, length], i64, with padding.
  Tensor padded(const std::vector<std::vector<int64_t>>& ids) const;

  const models::TextTransformerConfig& config() const { return config_; }

 private:
  models::TextTransformerConfig config_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

// The text of each label in each template, "a photo of a {}", whose {} stand for the label: all texts of the first
// label first.  Throws Error for a template without {}.
std::vector<std::string> label_texts(const std::vector<std::string>& labels, const std::vector<std::string>& templates);

// An embedding for each label: the mean over the templates of embeddings [labels · templates, D] of length 1, scaled to
// length 1 (Radford et al. 2021, section 3.1.4).
Tensor label_embeddings(const Tensor& embeddings, size_t labels);

}  // namespace vitrail
