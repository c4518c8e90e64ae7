// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/dual_texts.h"

#include <algorithm>

#include "vitrail/analysis/knn.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/text/open_clip_text.h"

namespace vitrail {
namespace {

// Texts of a causal tower are padded to a multiple, so that few programs serve texts of all lengths.
constexpr int64_t kLengthStep = 8;

std::unique_ptr<text::Tokenizer> open_tokenizer(const models::OpenedModel& opened,
                                                const std::filesystem::path& chosen) {
  const std::filesystem::path path = chosen.empty() ? opened.folder : chosen;
  const models::TextTransformerConfig& config = *opened.config.text;
  std::unique_ptr<text::Tokenizer> tokenizer =
      text::open_tokenizer(path, config.simple_tokenizer ? text::ClipForm::open_clip : text::ClipForm::transformers);
  // The embedding may have rows of no token, which make its size a multiple of up to 128.
  const int64_t padding = config.vocab_size - tokenizer->vocab_size();
  if (padding != 0 && !(padding > 0 && padding < 128 && config.vocab_size % 8 == 0)) {
    throw Error(path.string(), str("the model's tokenizer, with ", config.vocab_size, " tokens"),
                str("one with ", tokenizer->vocab_size(), ", of another model"));
  }
  if (config.pool == models::TextPool::first_eos && tokenizer->eos_id() != config.eos_token_id) {
    throw Error(path.string(), str("the model's tokenizer, whose end-of-text token is ", config.eos_token_id),
                str("one whose is ", tokenizer->eos_id()));
  }
  if (!config.causal && !tokenizer->pads_to_context() && !config.simple_tokenizer) {
    throw Error(path.string(), "a tokenizer that pads to the context, for a text tower without causal mask", "CLIP's");
  }
  return tokenizer;
}

std::string cleaned(const std::string& text, models::TextCleaning cleaning) {
  switch (cleaning) {
    case models::TextCleaning::none:
      return text;
    case models::TextCleaning::lower:
      return text::clean_lower(text);
    case models::TextCleaning::whitespace:
      return text::clean_whitespace(text);
    case models::TextCleaning::canonicalize:
      return text::clean_canonicalize(text);
  }
  return text;
}

std::string filled(const std::string& text, const std::string& label) {
  constexpr std::string_view kPlace = "{}";
  std::string result;
  size_t at = 0, found = text.find(kPlace);
  if (found == text.npos)
    throw Error("template", "{} where the label goes, as in \"a photo of a {}\"", "\"" + text + "\"");
  for (; found != text.npos; found = text.find(kPlace, at)) {
    result += text.substr(at, found - at) + label;
    at = found + kPlace.size();
  }
  return result + text.substr(at);
}

}  // namespace

DualTexts::DualTexts(const models::OpenedModel& opened, const std::filesystem::path& tokenizer)
    : config_(*opened.config.text), tokenizer_(open_tokenizer(opened, tokenizer)) {}

// [T, length]
Tensor DualTexts::padded(const std::vector<std::vector<int64_t>>& ids) const {
  int64_t length = config_.context_length;
  // What follows a text is seen without a causal mask, and by a last token that is pooled.
  const bool shortened = !tokenizer_->pads_to_context() && !config_.class_token && config_.causal &&
                         config_.pool != models::TextPool::last;
  if (shortened) {
    size_t longest = 0;
    for (const std::vector<int64_t>& text : ids) longest = std::max(longest, text.size());
    length = std::min(length, round_up(static_cast<int64_t>(longest), kLengthStep));
  }
  const int64_t pad = config_.class_token ? config_.pad_token_id : tokenizer_->pad_id();
  const Tensor result = Tensor::empty({static_cast<int64_t>(ids.size()), length}, DType::i64);
  auto* to = result.data<int64_t>();
  for (const std::vector<int64_t>& text : ids) {
    std::fill(std::ranges::copy(text, to).out, to + length, pad);
    to += length;
  }
  return result;
}

std::vector<int64_t> DualTexts::token_ids(const std::string& text, const std::string& where) const {
  const int64_t context = config_.context_length;
  std::vector<int64_t> ids = tokenizer_->encode(cleaned(text, config_.cleaning), context);
  if (ids == tokenizer_->encode("", context)) throw Error(where, "words", "\"" + text + "\"");
  return ids;
}

void DualTexts::check(const std::vector<int64_t>& ids, const std::string& where) const {
  const int64_t context = config_.context_length, vocabulary = tokenizer_->vocab_size();
  if (ids.empty() || std::ssize(ids) > context) throw Error(where, str("1 to ", context, " tokens"), str(ids.size()));
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocabulary) throw Error(where, str("tokens of the model, from 0 to ", vocabulary - 1), str(id));
  }
  if (std::ranges::find(ids, tokenizer_->eos_id()) == ids.end())
    throw Error(where, str("tokens of the model, with the one that ends a text, ", tokenizer_->eos_id()), "none");
}

std::vector<std::string> label_texts(const std::vector<std::string>& labels,
                                     const std::vector<std::string>& templates) {
  std::vector<std::string> texts;
  for (const std::string& label : labels) {
    for (const std::string& text : templates) texts.push_back(filled(text, label));
  }
  return texts;
}

Tensor label_embeddings(const Tensor& embeddings, size_t labels) {
  const auto count = static_cast<int64_t>(labels);
  const Tensor grouped = embeddings.view({count, embeddings.size(0) / count, embeddings.size(1)});
  return analysis::normalized_rows(ops::mean(grouped, 1));
}

}  // namespace vitrail
