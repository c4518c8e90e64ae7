// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/head_features_internal.h"

#include <algorithm>

#include "vitrail/analysis/knn.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/analysis/strength_search.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/copied_params.h"

namespace vitrail::train {
namespace {

// Images × features × classes up to which the fits of a regression and its cross-validation take at most a minute.
constexpr int64_t kMaxRegression = 10'000'000;

// The share of rows whose class with the most votes, the first of equal ones, is the label.
double accuracy_of_votes(const Tensor& votes, const std::vector<int64_t>& labels) {
  const int64_t classes = votes.size(1);
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* const row = votes.data<float>() + static_cast<int64_t>(i) * classes;
    right += std::max_element(row, row + classes) - row == labels[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

Score share_of(const char* name, const char* title, double value, int64_t images) {
  return {{.name = name, .title = title, .phrase = "", .unit = ScoreUnit::share}, value, images};
}

}  // namespace

models::VisionTransformer without_head(const models::VisionTransformer& model) {
  models::VisionTransformerConfig config = model.config();
  config.num_classes = 0;
  nn::CopiedParams params(model);
  return {config, ParamSource(params)};
}

infer::Session headless_session(const models::VisionTransformer& model, int threads, kernels::Precision precision) {
  return infer::Session(without_head(model), {.threads = threads, .precision = precision});
}

HeadFeatures head_features(const infer::Session& session, data::Loader& loader,
                           const std::function<void(const data::Batch&, int64_t)>& on_batch) {
  HeadFeatures features;
  std::vector<float> values;
  loader.start(0);
  for (int64_t step = 1; auto batch = loader.next(); ++step) {
    const int64_t count = batch->images.size(0);
    if (count > 0) {
      const Tensor rows = session.logits(batch->images).contiguous();
      values.insert(values.end(), rows.data<float>(), rows.data<float>() + rows.numel());
      features.labels.insert(features.labels.end(), batch->labels.data<int64_t>(),
                             batch->labels.data<int64_t>() + count);
      features.samples.insert(features.samples.end(), batch->samples.begin(), batch->samples.end());
    }
    on_batch(*batch, step);
  }
  const auto count = std::ssize(features.labels);
  features.rows = Tensor::from<float>({count, count == 0 ? 0 : std::ssize(values) / count}, values);
  return features;
}

std::optional<analysis::LinearClassifier> probe_of(const HeadFeatures& training, int64_t classes,
                                                   const std::function<void(int64_t, int64_t)>& progress) {
  if (training.labels.empty() || training.rows.numel() * classes > kMaxRegression) return std::nullopt;
  const analysis::StrengthSearch search =
      analysis::search_strength(training.rows, training.labels, classes, {}, progress);
  return analysis::fit_logistic_regression(training.rows, training.labels, classes, {.c = search.best});
}

void set_head(PreparedModel& prepared, const analysis::LinearClassifier& classifier) {
  const autograd::NoGrad no_grad;
  for (const auto& [name, values] : {std::pair{"weight", classifier.weight}, {"bias", classifier.bias}}) {
    const Tensor rounded = values.to(DType::f32);
    prepared.model.parameter(str("head.", name)).copy_(rounded);
    if (prepared.config.vit.dist_token) prepared.model.parameter(str("head_dist.", name)).copy_(rounded);
  }
}

std::vector<Score> baselines_of(const HeadFeatures& training, const HeadFeatures& validation, int64_t classes,
                                const std::optional<analysis::LinearClassifier>& probe) {
  const auto images = std::ssize(validation.labels);
  if (training.labels.empty() || images == 0) return {};
  const Tensor votes = analysis::knn_votes(analysis::normalized_rows(training.rows), training.labels,
                                           analysis::normalized_rows(validation.rows), classes);
  std::vector<Score> scores{share_of("knn", "k-NN", accuracy_of_votes(votes, validation.labels), images)};
  if (!probe) return scores;
  const analysis::Fit fit = analysis::fit_of(analysis::logits(*probe, validation.rows), validation.labels);
  scores.push_back(share_of("probe", "linear probe", fit.top1, images));
  return scores;
}

void warn_of_near_duplicates(const HeadFeatures& training, const Subset& train, const HeadFeatures& evaluated,
                             const Subset& set, const std::string& name) {
  if (training.samples.empty() || evaluated.samples.empty()) return;
  const auto nearest = analysis::nearest_rows(analysis::normalized_rows(evaluated.rows),
                                              analysis::TensorRows(analysis::normalized_rows(training.rows)), 1);
  const auto score = [&](size_t i) { return static_cast<double>(nearest[i][0].score); };
  int64_t count = 0;
  size_t best = 0;
  for (size_t i = 0; i < nearest.size(); ++i) {
    count += score(i) >= analysis::kNearIdentical ? 1 : 0;
    if (score(i) > score(best)) best = i;
  }
  if (count == 0 || 2 * count > std::ssize(nearest)) return;
  const int64_t nearest_sample = training.samples[static_cast<size_t>(nearest[best][0].row)];
  warn(str(count, " of ", nearest.size(), " ", name, " images are near-identical to training images, as ",
           set.dataset->path(evaluated.samples[best]), " to ", train.dataset->path(nearest_sample),
           " (vitrail duplicates lists them): accuracies on them are too high"));
}

}  // namespace vitrail::train
