// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "probe": a logistic regression on the features of a pretrained model (Alain & Bengio 2016; Radford et
// al. 2021, CLIP, section 3.2), for few images and little time.
#include "vitrail/analysis/strength_search.h"
#include "vitrail/train/objectives/classification/classification_internal.h"
#include "vitrail/train/objectives/classification/classifier_report_internal.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"

namespace vitrail::train {

// Adds a line for each setting that does not go with a probe.
void check_probe_recipe(const Recipe& recipe, std::vector<std::string>& problems);

// Adds the choice of the penalty to the facts, charts and summary.
void add_search(const analysis::StrengthSearch& search, Report& report);

// For the model card.
TrainingTexts probe_texts(const Recipe& recipe, const analysis::StrengthSearch& search);

// Replaces the head of the model `recipe.model.init` by a logistic regression on the head's input.  It computes the
// features of the training images once, without augmentation, and chooses the L2 penalty by cross-validation
// (analysis/strength_search.h).  Images are held out for validation only if recipe.data.holdout says so.
class Probe : public Classifier {
 public:
  explicit Probe(const ObjectiveContext& context);

  std::vector<std::string> introduction() const override;
  Solution solve(const SolveProgress& progress) override;
  void add_section(const Measurement& measurement, Split split, Report& report) override {
    Classifier::add_section(measurement, split, report);
    add_search(search_, report);
  }
  std::string model_card(const ReportInput& input) const override {
    return classifier_card(input, data_.classes, probe_texts(context_.recipe, search_));
  }

 private:
  HeadFeatures compute_features(const SolveProgress& progress);
  analysis::LinearClassifier fit(const HeadFeatures& features, const SolveProgress& progress);
  Evaluation evaluation_of(const analysis::Fit& fit, int64_t images) const;

  analysis::StrengthSearch search_;
  int64_t skipped_ = 0;
};

}  // namespace vitrail::train
