// SPDX-License-Identifier: Apache-2.0
#pragma once
// DualModel: images and texts in one embedding space (CLIP, SigLIP), for zero-shot classification and retrieval.
//
//   const vitrail::DualModel model("clip-vit-base-patch32");
//   const Tensor images = model.embed_image(model.images().read("photo.jpg"));
//   const Tensor texts = model.embed_texts({"a photo of a cat", "a photo of a dog"});
//   const Tensor probabilities = model.probabilities(model.logits(images, texts));  // [1, 2]
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/base/callbacks.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/pipeline/dual_texts.h"
#include "vitrail/pipeline/model.h"

namespace vitrail {

// Thread-safe, as Model.  Embeddings have length 1, so that the product of two is their cosine similarity, unless
// `l2_normalize` is false.
class DualModel {
 public:
  static constexpr size_t kTextsPerPass = 64;
  static constexpr const char* kDefaultTemplate = "{}";  // the labels are the texts

  // files and options: as for Model.  tokenizer: a file or folder for text::open_tokenizer(), by default the model's
  // folder.  Throws Error also for an image model alone, and for a tokenizer that is not the model's.
  explicit DualModel(const models::ModelFiles& files, const ModelOptions& options = {},
                     const std::filesystem::path& tokenizer = {});
  // opened.config.text is set; options.load is not used.
  DualModel(const models::OpenedModel& opened, const ModelOptions& options,
            const std::filesystem::path& tokenizer = {});

  Tensor embed_image(const image::ImageView& image) const { return embed_images({&image, 1}); }  // [1, D]
  Tensor embed_images(std::span<const image::ImageView> images) const;                           // [B, D]
  // Texts in UTF-8 → [T, D].  A text longer than the model's context is cut, with a warning.  Throws Error for no text
  // and for one without tokens.  tokens: the number of their ids, without padding, is added to it.  progress: called
  // after each pass of kTextsPerPass texts; it may end the work by an exception.
  Tensor embed_texts(const std::vector<std::string>& texts, bool l2_normalize = true, int64_t* tokens = nullptr,
                     const ProgressCallback& progress = {}) const;
  // The ids of a text, with special tokens and without padding.  Throws Error naming `where` for one without tokens.
  std::vector<int64_t> token_ids(const std::string& text, const std::string& where) const {
    return texts_.token_ids(text, where);
  }
  // Texts by their ids → [T, D].  ids_of: of text i, as token_ids() gives them; asked for before its pass.  Throws
  // Error for no ids, for more than the context has, for one beyond the vocabulary, and without the token that ends a
  // text.
  Tensor embed_tokens(size_t count, const std::function<std::vector<int64_t>(size_t i)>& ids_of,
                      bool l2_normalize = true, const ProgressCallback& progress = {}) const;
  // An embedding for each label: the mean over the templates, "a photo of a {}", of embeddings of length 1, scaled to
  // length 1 (Radford et al. 2021, section 3.1.4).  Each {} stands for the label.  Without templates it is
  // kDefaultTemplate.  Throws Error for a template without {}.
  Tensor embed_labels(const std::vector<std::string>& labels, const std::vector<std::string>& templates = {},
                      const ProgressCallback& progress = {}) const;

  // The cosine of each pair: images [B, D], texts [T, D] → [B, T].
  Tensor similarity(const Tensor& images, const Tensor& texts) const;
  // exp(logit_scale) · similarity + logit_bias: the logits per image [B, T].
  Tensor logits(const Tensor& images, const Tensor& texts) const;
  // For each row of logits, the softmax over the texts, or for a model of independent_scores() each one's sigmoid.
  Tensor probabilities(const Tensor& logits) const;
  bool independent_scores() const { return text_config().loss == models::DualLoss::sigmoid; }

  double logit_scale() const { return std::exp(text_->logit_scale); }  // what similarities are multiplied with
  double logit_bias() const { return text_->logit_bias; }

  // The image tower: reading images, preprocessing, and features other than the embedding.
  const Model& images() const { return images_; }
  const models::TextTransformerConfig& text_config() const { return text_->model.config(); }

 private:
  Model images_;
  DualTexts texts_;
  std::unique_ptr<models::TextTower> text_;  // the session refers to it
  std::unique_ptr<infer::FunctionSession> text_session_;
};

}  // namespace vitrail
