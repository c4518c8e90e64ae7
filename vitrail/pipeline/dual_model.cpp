// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/dual_model.h"

#include <algorithm>
#include <cmath>

#include "vitrail/analysis/knn.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"
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

infer::FunctionOptions session_options(const ModelOptions& options) {
  return {.threads = options.threads, .precision = options.precision.value_or(kernels::Precision::fp32)};
}

infer::Function forward_of(const models::TextTransformer& tower) {
  return [&tower](const infer::NamedTensors& in) -> infer::NamedTensors {
    const Tensor mask = tower.config().class_token ? infer::find_tensor(in, "mask") : Tensor();
    return {{"embeddings", tower.forward(infer::find_tensor(in, "ids"), infer::find_tensor(in, "rows"), mask)}};
  };
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

models::OpenedModel open_dual(const models::ModelFiles& files, const ModelOptions& options) {
  models::OpenedModel opened = models::open_model(files, options.load);
  if (opened.config.text) return opened;
  throw Error(files.path.string(), "a dual model with a text tower (CLIP, SigLIP)",
              "an image model alone (\"" + opened.config.architecture + "\")");
}

}  // namespace

DualModel::DualModel(const models::ModelFiles& files, const ModelOptions& options,
                     const std::filesystem::path& tokenizer)
    : DualModel(open_dual(files, options), options, tokenizer) {}

DualModel::DualModel(const models::OpenedModel& opened, const ModelOptions& options,
                     const std::filesystem::path& tokenizer)
    : images_(opened, options),
      tokenizer_(open_tokenizer(opened, tokenizer)),
      text_(std::make_unique<models::TextTower>(models::build_text_tower(opened))),
      text_session_(
          std::make_unique<infer::FunctionSession>(text_->model, forward_of(text_->model), session_options(options))) {}

Tensor DualModel::embed_images(std::span<const image::ImageView> images) const {
  return images_.embed(images, {.l2_normalize = true});
}

// [T, length]
Tensor DualModel::padded(const std::vector<std::vector<int64_t>>& ids) const {
  int64_t length = text_config().context_length;
  // What follows a text is seen without a causal mask, and by a last token that is pooled.
  const bool shortened = !tokenizer_->pads_to_context() && !text_config().class_token && text_config().causal &&
                         text_config().pool != models::TextPool::last;
  if (shortened) {
    size_t longest = 0;
    for (const std::vector<int64_t>& text : ids) longest = std::max(longest, text.size());
    length = std::min(length, round_up(static_cast<int64_t>(longest), kLengthStep));
  }
  const int64_t pad = text_config().class_token ? text_config().pad_token_id : tokenizer_->pad_id();
  const Tensor result = Tensor::empty({static_cast<int64_t>(ids.size()), length}, DType::i64);
  auto* to = result.data<int64_t>();
  for (const std::vector<int64_t>& text : ids) {
    std::fill(std::ranges::copy(text, to).out, to + length, pad);
    to += length;
  }
  return result;
}

std::vector<int64_t> DualModel::token_ids(const std::string& text, const std::string& where) const {
  const int64_t context = text_config().context_length;
  std::vector<int64_t> ids = tokenizer_->encode(cleaned(text, text_config().cleaning), context);
  if (ids == tokenizer_->encode("", context)) throw Error(where, "words", "\"" + text + "\"");
  return ids;
}

void DualModel::check_tokens(const std::vector<int64_t>& ids, const std::string& where) const {
  const int64_t context = text_config().context_length, vocabulary = tokenizer_->vocab_size();
  if (ids.empty() || std::ssize(ids) > context) throw Error(where, str("1 to ", context, " tokens"), str(ids.size()));
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocabulary) throw Error(where, str("tokens of the model, from 0 to ", vocabulary - 1), str(id));
  }
  if (std::ranges::find(ids, tokenizer_->eos_id()) == ids.end())
    throw Error(where, str("tokens of the model, with the one that ends a text, ", tokenizer_->eos_id()), "none");
}

Tensor DualModel::embed_texts(const std::vector<std::string>& texts, bool l2_normalize, int64_t* tokens,
                              const ProgressCallback& progress) const {
  const auto ids_of = [&](size_t i) {
    std::vector<int64_t> ids = token_ids(texts[i], str("text ", i));
    if (tokens) *tokens += std::ssize(ids);
    return ids;
  };
  return embed_tokens(texts.size(), ids_of, l2_normalize, progress);
}

Tensor DualModel::embed_tokens(size_t count, const std::function<std::vector<int64_t>(size_t)>& ids_of,
                               bool l2_normalize, const ProgressCallback& progress) const {
  if (count == 0) throw Error("texts", "at least one text", "none");
  std::vector<Tensor> batches;
  for (size_t first = 0; first < count; first += kTextsPerPass) {
    std::vector<std::vector<int64_t>> ids;
    const size_t last = std::min(first + kTextsPerPass, count);
    for (size_t i = first; i < last; ++i) {
      ids.push_back(ids_of(i));
      check_tokens(ids.back(), str("text ", i));
    }
    const Tensor batch = padded(ids);
    infer::NamedTensors inputs{{"ids", batch}, {"rows", text_->model.pooled_rows(batch)}};
    if (text_config().class_token) inputs.push_back({"mask", text_->model.padding_mask(batch)});
    batches.push_back(text_session_->run(inputs)[0].tensor);
    if (progress) progress(static_cast<int64_t>(last), static_cast<int64_t>(count));
  }
  const Tensor embeddings = ops::cat(batches, 0);
  return l2_normalize ? analysis::normalized_rows(embeddings) : embeddings;
}

Tensor DualModel::embed_labels(const std::vector<std::string>& labels, const std::vector<std::string>& templates,
                               const ProgressCallback& progress) const {
  if (templates.empty()) return embed_labels(labels, {kDefaultTemplate}, progress);
  std::vector<std::string> texts;
  for (const std::string& label : labels) {
    for (const std::string& text : templates) texts.push_back(filled(text, label));
  }
  const Tensor embeddings = embed_texts(texts, true, nullptr, progress);
  const auto count = static_cast<int64_t>(labels.size()), each = static_cast<int64_t>(templates.size());
  return analysis::normalized_rows(ops::mean(embeddings.view({count, each, embeddings.size(1)}), 1));
}

Tensor DualModel::similarity(const Tensor& images, const Tensor& texts) const {
  return ops::linear(analysis::normalized_rows(images), analysis::normalized_rows(texts), {});
}

Tensor DualModel::logits(const Tensor& images, const Tensor& texts) const {
  const Tensor scaled = ops::mul(similarity(images, texts), Tensor::full({1}, std::exp(text_->logit_scale)));
  return ops::add(scaled, Tensor::full({1}, text_->logit_bias));
}

Tensor DualModel::probabilities(const Tensor& logits) const {
  if (!independent_scores()) return ops::softmax(logits);
  const Tensor result = logits.clone();
  float* const values = result.data<float>();
  std::transform(values, values + result.numel(), values,
                 [](float logit) { return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit)))); });
  return result;
}

}  // namespace vitrail
