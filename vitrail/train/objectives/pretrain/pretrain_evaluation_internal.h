// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tells, without a loss, how good the features of a model are.
#include <functional>
#include <optional>

#include "vitrail/infer/session.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_data_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/run/loader_setup_internal.h"

namespace vitrail::train {

// The scores, in this order: with a probe the accuracy of k nearest neighbours, and with `linear` that of a logistic
// regression; the share of the held-out images whose augmented view has the image itself as its nearest neighbour among
// them (instance retrieval); their effective rank (analysis::effective_rank) as a share of the largest possible one.
// The loss is that of held-out images where the method has one and no probe decides.
Metrics pretrain_metrics(bool probe, bool linear, const PretrainMethodRow& method);

// Whether a logistic regression on the features of a probe takes seconds.
bool has_linear_probe(const ProbeSets& probe, int64_t features);

class FeatureEvaluation {
 public:
  // Images are prepared as `training` says, whose augmentation gives the views.  `held_out` and `probe` outlive this
  // object.
  FeatureEvaluation(const Subset& held_out, const std::optional<ProbeSets>& probe, data::LoaderOptions training);

  struct Result {
    std::vector<double> values;  // pretrain_metrics()
    HeadFeatures held_out;
  };
  // For the model of a session, whose logits are its features.  `progress(done, total)`: after each batch; it may
  // throw.
  Result measure(const infer::Session& session, const std::function<void(int64_t, int64_t)>& progress) const;

 private:
  const Subset& held_out_;
  const std::optional<ProbeSets>& probe_;
  data::LoaderOptions options_, view_options_;
};

}  // namespace vitrail::train
