// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective "probe": a logistic regression on the features of a pretrained model (Alain & Bengio 2016; Radford et
// al. 2021, CLIP, section 3.2), for few images and little time.
#include "vitrail/analysis/strength_search.h"
#include "vitrail/train/objectives/classification/classification_internal.h"

namespace vitrail::train {

// Replaces the head of the model `recipe.model.init` by a logistic regression on the head's input.  It computes the
// features of the training images once, without augmentation, and chooses the L2 penalty by cross-validation
// (analysis/strength_search.h).  Images are held out for validation only if recipe.data.holdout says so.
class Probe : public Classifier {
 public:
  explicit Probe(const ObjectiveContext& context);

  std::vector<std::string> introduction() const override;
  Solution solve(const SolveProgress& progress) override;
  const analysis::StrengthSearch* search() const override { return &search_; }

 private:
  struct Features {
    Tensor rows;  // f32 [n, D]
    std::vector<int64_t> labels;
  };
  Features compute_features(const SolveProgress& progress);
  analysis::LinearClassifier fit(const Features& features, const SolveProgress& progress);
  void set_head(const analysis::LinearClassifier& classifier);
  Evaluation evaluation_of(const analysis::Fit& fit, int64_t images) const;

  analysis::StrengthSearch search_;
  int64_t skipped_ = 0;
};

}  // namespace vitrail::train
