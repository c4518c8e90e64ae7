// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/pretrain/pretrain_evaluation_internal.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "vitrail/analysis/effective_rank.h"
#include "vitrail/analysis/knn.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/base/error.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"

namespace vitrail::train {
namespace {

const Metric kKnn{"knn",
                  "k-NN",
                  "k-NN {}",
                  ScoreUnit::share,
                  "Accuracy of k nearest neighbours on the probe",
                  "It should rise above the start. With few images it varies from epoch to epoch."};
const Metric kLinear{"linear",
                     "linear probe",
                     "linear probe {}",
                     ScoreUnit::share,
                     "Accuracy of a linear probe",
                     "It should rise above the start, often less than that of the nearest neighbours."};
const Metric kRetrieval{
    "retrieval",
    "instance retrieval",
    "instance retrieval {}",
    ScoreUnit::percent,
    "Instance retrieval",
    "It should rise, or stay: a clear fall means that the features forget what tells images apart."};
const Metric kRank{"rank",
                   "effective rank",
                   "effective rank {}",
                   ScoreUnit::percent,
                   "Effective rank",
                   "It may fall while the features improve. Near 0 they have collapsed."};

// The share of the images whose view has the image as its nearest neighbour.
double retrieval(const HeadFeatures& images, const HeadFeatures& views) {
  const analysis::TensorRows rows(analysis::normalized_rows(images.rows));
  const auto nearest = analysis::nearest_rows(analysis::normalized_rows(views.rows), rows, 1);
  int64_t found = 0;
  for (size_t i = 0; i < nearest.size(); ++i)
    found += images.samples[static_cast<size_t>(nearest[i][0].row)] == views.samples[i] ? 1 : 0;
  return static_cast<double>(found) / static_cast<double>(nearest.size());
}

}  // namespace

Metrics pretrain_metrics(bool probe, bool linear, const PretrainMethodRow& method) {
  Metrics metrics;
  if (probe) metrics.each.push_back(kKnn);
  if (linear) metrics.each.push_back(kLinear);
  metrics.each.insert(metrics.each.end(), {kRetrieval, kRank});
  metrics.validates_loss = method.has_held_out_loss && (!probe || method.loss_decides);
  metrics.loss_note = method.loss_note;
  for (size_t i = 0; i < metrics.each.size(); ++i)
    metrics.line += str(i == 0 ? "" : "  ", metrics.each[i].title, " {", i, "}");
  metrics.average_line = metrics.line;
  metrics.in_report = metrics.each.size();
  return metrics;
}

bool has_linear_probe(const ProbeSets& probe, int64_t features) {
  constexpr int64_t kMaxProducts = 1'000'000;
  return probe.train.size() * features * probe.classes <= kMaxProducts;
}

FeatureEvaluation::FeatureEvaluation(const Subset& held_out, const std::optional<ProbeSets>& probe,
                                     data::LoaderOptions training)
    : held_out_(held_out), probe_(probe) {
  training.rank = 0, training.ranks = 1;  // each process measures all images
  options_ = data::evaluation_options(training);
  view_options_ = options_;
  view_options_.augment = training.augment;
}

FeatureEvaluation::Result FeatureEvaluation::measure(const infer::Session& session,
                                                     const std::function<void(int64_t, int64_t)>& progress) const {
  std::deque<data::Loader> loaders;
  const auto add_loader = [&](const Subset& subset, data::LoaderOptions options) {
    options.subset = subset.samples;
    loaders.emplace_back(subset.dataset, options);
  };
  if (probe_) {
    add_loader(probe_->train, options_);
    add_loader(probe_->evaluated, options_);
  }
  add_loader(held_out_, options_);
  add_loader(held_out_, view_options_);
  int64_t total = 0, done = 0;
  for (const data::Loader& loader : loaders) total += loader.steps_per_epoch();
  std::vector<HeadFeatures> features;
  for (data::Loader& loader : loaders) {
    features.push_back(head_features(session, loader, [&](const data::Batch&, int64_t) { progress(++done, total); }));
    if (features.back().labels.empty()) throw Error("images that are measured", "one that can be read", "none");
  }
  std::vector<double> values;
  if (probe_) {
    std::optional<analysis::LinearClassifier> linear;
    if (has_linear_probe(*probe_, features[0].rows.size(1))) linear = probe_of(features[0], probe_->classes);
    for (const Score& score : baselines_of(features[0], features[1], probe_->classes, linear))
      values.push_back(score.value);
  }
  HeadFeatures& images = features[features.size() - 2];
  values.push_back(retrieval(images, features.back()));
  const int64_t largest = std::min(images.rows.size(0), images.rows.size(1));
  values.push_back(analysis::effective_rank(images.rows) / static_cast<double>(largest));
  return {values, std::move(images)};
}

}  // namespace vitrail::train
