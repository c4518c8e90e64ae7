// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/dual_model.h"

#include <algorithm>
#include <cmath>

#include "vitrail/analysis/knn.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"

namespace vitrail {
namespace {

infer::FunctionOptions session_options(const ModelOptions& options) {
  return {.threads = options.threads, .precision = options.precision.value_or(kernels::Precision::fp32)};
}

infer::Function forward_of(const models::TextTransformer& tower) {
  return [&tower](const infer::NamedTensors& in) -> infer::NamedTensors {
    const Tensor mask = tower.config().class_token ? infer::find_tensor(in, "mask") : Tensor();
    return {{"embeddings", tower.forward(infer::find_tensor(in, "ids"), infer::find_tensor(in, "rows"), mask)}};
  };
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
      texts_(opened, tokenizer),
      text_(std::make_unique<models::TextTower>(models::build_text_tower(opened))),
      text_session_(
          std::make_unique<infer::FunctionSession>(text_->model, forward_of(text_->model), session_options(options))) {}

Tensor DualModel::embed_images(std::span<const image::ImageView> images) const {
  return images_.embed(images, {.l2_normalize = true});
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
      texts_.check(ids.back(), str("text ", i));
    }
    const Tensor batch = texts_.padded(ids);
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
  return label_embeddings(embed_texts(label_texts(labels, templates), true, nullptr, progress), labels.size());
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
