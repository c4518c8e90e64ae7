// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/contrastive/contrastive_evaluation_internal.h"

#include <algorithm>

#include "vitrail/analysis/nearest.h"
#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

constexpr int64_t kRanks[]{1, 5};

// For each k of kRanks, the share of the queries with a row among the k nearest that `matches`.
template <class Matches>
std::vector<double> recall(const Tensor& queries, const Tensor& rows, const Matches& matches) {
  const auto nearest = analysis::nearest_rows(queries, analysis::TensorRows(rows), *std::rbegin(kRanks));
  std::vector<double> shares;
  for (const int64_t k : kRanks) {
    int64_t found = 0;
    for (size_t query = 0; query < nearest.size(); ++query) {
      const auto end = nearest[query].begin() + std::min<int64_t>(k, std::ssize(nearest[query]));
      found += std::any_of(nearest[query].begin(), end,
                           [&](const auto& near) { return matches(static_cast<int64_t>(query), near.row); });
    }
    shares.push_back(static_cast<double>(found) / static_cast<double>(nearest.size()));
  }
  return shares;
}

}  // namespace

Metrics contrastive_metrics(bool zero_shot) {
  using enum ScoreUnit;
  Metrics metrics{.each = {{"text_recall1", "text recall@1", "text recall@1 {}", percent, "Text recall@1"},
                           {"text_recall5", "text recall@5", "text recall@5 {}", percent},
                           {"image_recall1", "image recall@1", "image recall@1 {}", percent},
                           {"image_recall5", "image recall@5", "image recall@5 {}", percent}}};
  if (zero_shot) metrics.each.push_back({"zero_shot", "zero-shot accuracy", "zero-shot accuracy {}", percent});
  for (size_t i = 0; i < metrics.each.size(); ++i)
    metrics.line += str(i == 0 ? "" : "  ", metrics.each[i].title, " {", i, "}");
  metrics.average_line = metrics.line;
  metrics.in_report = metrics.each.size();
  metrics.loss_in_summary = true;
  return metrics;
}

std::vector<double> retrieval_recall(const PairEmbeddings& pairs) {
  const auto image_of = [&](int64_t text) { return pairs.image_of_text[static_cast<size_t>(text)]; };
  std::vector<double> values =
      recall(pairs.images, pairs.texts, [&](int64_t image, int64_t text) { return image_of(text) == image; });
  const std::vector<double> of_texts =
      recall(pairs.texts, pairs.images, [&](int64_t text, int64_t image) { return image_of(text) == image; });
  values.insert(values.end(), of_texts.begin(), of_texts.end());
  return values;
}

double zero_shot_accuracy(const Tensor& images, const std::vector<int64_t>& labels, const Tensor& classes) {
  const auto nearest = analysis::nearest_rows(images, analysis::TensorRows(classes), 1);
  int64_t correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) correct += nearest[i].front().row == labels[i] ? 1 : 0;
  return static_cast<double>(correct) / static_cast<double>(labels.size());
}

}  // namespace vitrail::train
