// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/texts_internal.h"

namespace vitrail::explain {

ComparedTexts compare_texts(const DualModel& model, const image::ImageView& photo,
                            const std::vector<std::string>& texts, const Tensor& embeddings) {
  const Tensor image = model.embed_image(photo), logits = model.logits(image, embeddings);
  return {.texts = texts,
          .cosines = model.similarity(image, embeddings).select(0, 0).contiguous(),
          .logits = logits.select(0, 0).contiguous(),
          .probabilities = model.probabilities(logits).select(0, 0).contiguous(),
          .scale = model.logit_scale(),
          .bias = model.logit_bias(),
          .independent_scores = model.independent_scores()};
}

nlohmann::ordered_json texts_json(const ComparedTexts& compared) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < compared.texts.size(); ++i) {
    const auto at = [&](const Tensor& values) { return finite_or_text(static_cast<double>(values.data<float>()[i])); };
    rows.push_back({{"text", compared.texts[i]},
                    {"cosine", at(compared.cosines)},
                    {"logit", at(compared.logits)},
                    {"probability", at(compared.probabilities)}});
  }
  return {{"scale", compared.scale},
          {"bias", compared.bias},
          {"probability", compared.independent_scores ? "sigmoid" : "softmax"},
          {"rows", rows}};
}

}  // namespace vitrail::explain
