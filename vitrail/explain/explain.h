// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning page: one HTML file that shows a forward pass of a model on an image.  docs/design/explain.md describes
// its data.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/fields.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::explain {

// The size of the page: at most 2 MB, at most 8 MB, or all values in 16 bits.
enum class Detail : uint8_t { small, standard, full };

struct ExplainOptions {
  std::string target = {};  // the name or index of a class; empty: the model's prediction
  // Of a classifier the names of all classes, instead of the model's; of a dual model texts that are compared with the
  // image.
  std::vector<std::string> labels = {};
  std::string compare = {};  // the name of a second model, which the caller opens
  Detail detail = Detail::standard;
  std::string language = "en";  // at the start: en or zh
};

// The options as fields: class, labels, compare, detail, lang.
void describe_explain(Fields& fields, ExplainOptions& options);
void describe_page(Fields& fields, ExplainOptions& options);  // detail and lang alone

// Texts and the embedding of an image, by a dual model.
struct ComparedTexts {
  std::vector<std::string> texts;
  Tensor cosines, logits, probabilities;  // [texts]
  double scale = 1, bias = 0;             // logit = scale · cosine + bias
  bool independent_scores = false;        // each probability is a sigmoid; else the softmax over the texts
};
// embeddings: DualModel::embed_labels() of the texts.
ComparedTexts compare_texts(const DualModel& model, const image::ImageView& photo,
                            const std::vector<std::string>& texts, const Tensor& embeddings);

// A second model on the same image.
struct ComparedModel {
  const Model& model;
  const models::OpenedModel& opened;  // the same
  std::string name = {};
};

// An image with what the page calls it.
struct ExplainedImage {
  const image::Image& photo;
  std::string name = {};   // the image's
  std::string model = {};  // the model's
  std::optional<ComparedTexts> texts = {};
  std::optional<ComparedModel> compared = {};
};

struct LearningPage {
  std::string html;
  // Values of the forward pass that the page does not have: "blocks.*.mlp.act" and "17 of 197 tokens".
  std::vector<std::pair<std::string, std::string>> left_out = {};
  std::string claims = {};  // JSON: [{"id": "softmax_rows", "values": {…}}, …], facts of the model that the page states
};

// Throws Error for a class that the model does not have, a class or labels of a model without classes, and another
// number of labels than classes.
void check_explain(const Model& model, const ExplainOptions& options);

// opened: the same model, whose weights are read again.  A model without a classifier has a page without predictions
// and attributions.  progress: called before each pass of several; may throw.  Throws Error as check_explain(), and for
// a model with int8 weights.
LearningPage explain(const Model& model, const models::OpenedModel& opened, const ExplainedImage& image,
                     const ExplainOptions& options, const ProgressCallback& progress = {});

}  // namespace vitrail::explain
