// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/loader/shared_images.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/probe/probe_internal.h"

namespace vitrail::train {
namespace {

// Cross-validation makes a validation set unnecessary.
DataRecipe without_default_holdout(DataRecipe recipe) {
  if (!recipe.holdout) recipe.holdout = 0;
  return recipe;
}

}  // namespace

void check_probe_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  if (recipe.model.init.empty())
    problems.emplace_back("model.init: expected the pretrained model of the probe, here or after -m, got none");
  check_classifier_recipe(recipe, problems);
  const bool given = !recipe.loss.class_weights.empty();
  if (given || recipe.loss.class_weighting != "none")
    problems.push_back(
        str(given ? "loss.class_weights" : "loss.class_weighting", ": expected no weights for a probe, got some"));
}

Probe::Probe(const ObjectiveContext& context) : Classifier(context, without_default_holdout(context.recipe.data)) {
  options_ = data::evaluation_options(options_);
  if (!data_.validation.dataset) data::warn_of_repeated_images({*data_.train.dataset, data_.train.samples, "training"});
}

std::vector<std::string> Probe::introduction() const { return introduction_of("computing features of "); }

HeadFeatures Probe::compute_features(const SolveProgress& progress) {
  const infer::Session session =
      headless_session(prepared_.model, context_.threads, kernels::precision_from_name(context_.recipe.precision));
  data::Loader loader = evaluation_loader(data_.train, options_);
  std::vector<int64_t> read;
  HeadFeatures features = head_features(session, loader, [&](const data::Batch& batch, int64_t step) {
    skipped_ += static_cast<int64_t>(batch.skipped.size());
    unreadable_.add(data_.train, batch);
    read.insert(read.end(), batch.samples.begin(), batch.samples.end());
    progress(Progress::Phase::features, step, loader.steps_per_epoch());
  });
  if (features.labels.empty()) throw Error(context_.recipe.data.train, "readable images", "none");
  unreadable_.require_classes(data_, context_.recipe.data);
  if (skipped_ > 0) data_.train.samples = std::move(read);  // the report counts what was trained on
  return features;
}

analysis::LinearClassifier Probe::fit(const HeadFeatures& features, const SolveProgress& progress) {
  const auto classes = static_cast<int64_t>(data_.classes.size());
  const analysis::StrengthSearchOptions options;
  search_ =
      analysis::search_strength(features.rows, features.labels, classes, options,
                                [&](int64_t done, int64_t total) { progress(Progress::Phase::search, done, total); });
  if (search_.folds == 0) warn("a class has a single image, so that the penalty is not chosen by cross-validation");
  analysis::LogisticRegressionOptions regression = options.regression;
  regression.c = search_.best;
  analysis::LinearClassifier classifier =
      analysis::fit_logistic_regression(features.rows, features.labels, classes, regression);
  if (!classifier.converged)
    warn(str("the regression stopped after ", classifier.iterations, " iterations with a gradient of ",
             classifier.largest_gradient, ", above the tolerance ", regression.tolerance));
  return classifier;
}

Evaluation Probe::evaluation_of(const analysis::Fit& fit, int64_t images) const {
  return {fit.loss, images, scores_of(metrics_.each, {fit.top1}, images)};
}

Solution Probe::solve(const SolveProgress& progress) {
  const HeadFeatures features = compute_features(progress);
  const analysis::LinearClassifier classifier = fit(features, progress);
  const analysis::Fit training = analysis::fit_of(analysis::logits(classifier, features.rows), features.labels);
  set_head(prepared_, classifier);
  Solution solution{.iterations = classifier.iterations,
                    .training = evaluation_of(training, std::ssize(features.labels)),
                    .skipped = skipped_};
  if (search_.folds == 0) return solution;
  const analysis::Fit held_out = search_.held_out_fit();
  solution.cross_validated = evaluation_of(held_out, search_.samples);
  context_.log(str(search_.folds, "-fold cross-validation of ", search_.c.size(), " penalties: C ", search_.best,
                   ", top-1 ", data::accuracy_text(held_out.top1, search_.samples)));
  return solution;
}

}  // namespace vitrail::train
