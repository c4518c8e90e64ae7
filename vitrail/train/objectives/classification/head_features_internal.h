// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inputs of a classifier's head, and what simpler methods than training reach with them.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "vitrail/analysis/logistic_regression.h"
#include "vitrail/infer/session.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/run/loader_setup_internal.h"

namespace vitrail::train {

// A copy of the model without its head, whose logits are the input of the head.
models::VisionTransformer without_head(const models::VisionTransformer& model);
infer::Session headless_session(const models::VisionTransformer& model, int threads, kernels::Precision precision);

struct HeadFeatures {
  Tensor rows;  // f32 [n, D]
  std::vector<int64_t> labels;
  std::vector<int64_t> samples = {};  // indices in the dataset
};

// Those of all batches of the loader.  Images that cannot be read are left out.  `on_batch(batch, steps so far)`: after
// each.
HeadFeatures head_features(const infer::Session& session, data::Loader& loader,
                           const std::function<void(const data::Batch&, int64_t)>& on_batch);

// A logistic regression with the penalty that cross-validation chooses; null if it would take more than about a minute.
// `progress`: as search_strength().
std::optional<analysis::LinearClassifier> probe_of(const HeadFeatures& training, int64_t classes,
                                                   const std::function<void(int64_t, int64_t)>& progress = {});

// Replaces the head by the classifier.  A model with a distillation token averages the logits of two heads, and its
// features are the mean of their inputs: both heads get it.
void set_head(PreparedModel& prepared, const analysis::LinearClassifier& classifier);

// Accuracies on the validation images of k nearest neighbours among the training images, and of `probe` if there is
// one.
std::vector<Score> baselines_of(const HeadFeatures& training, const HeadFeatures& validation, int64_t classes,
                                const std::optional<analysis::LinearClassifier>& probe);

// Warns of images of the set `name` ("test") that are near-identical to training images (analysis::kNearIdentical), and
// names the nearest two.  Silent where most are, because such features tell few images apart.
void warn_of_near_duplicates(const HeadFeatures& training, const Subset& train, const HeadFeatures& evaluated,
                             const Subset& set, const std::string& name);

}  // namespace vitrail::train
