// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inputs of a classifier's head, and what simpler methods than training reach with them.
#include <cstdint>
#include <functional>
#include <vector>

#include "vitrail/infer/session.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/run/loader_setup_internal.h"

namespace vitrail::train {

// The model without its head, in a session: its logits are the input of the head.
infer::Session headless_session(PreparedModel& prepared, int threads, kernels::Precision precision);

struct HeadFeatures {
  Tensor rows;  // f32 [n, D]
  std::vector<int64_t> labels;
  std::vector<int64_t> samples = {};  // indices in the dataset
};

// Those of all batches of the loader.  Images that cannot be read are left out.  `on_batch(batch, steps so far)`: after
// each.
HeadFeatures head_features(const infer::Session& session, data::Loader& loader,
                           const std::function<void(const data::Batch&, int64_t)>& on_batch);

// Accuracies on the validation images of classifiers that are fitted to the features of the training images: k nearest
// neighbours, and logistic regression, unless that would take long.
std::vector<Score> baselines_of(const HeadFeatures& training, const HeadFeatures& validation, int64_t classes);

// Warns of images of the set `name` ("test") that are near-identical to training images (analysis::kNearIdentical), and
// names the nearest two.  Silent where most are, because such features tell few images apart.
void warn_of_near_duplicates(const HeadFeatures& training, const Subset& train, const HeadFeatures& evaluated,
                             const Subset& set, const std::string& name);

}  // namespace vitrail::train
