// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning page of a training run: its curves, and how attention, logit lens and token norms of a few images and
// the predictions of held-out images change from kept model to kept model.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/explain/explain.h"

namespace vitrail::explain {

struct LabelledImage {
  image::Image photo = {};
  std::string name = {};
  int64_t label = -1;  // the class; -1: unknown
};

struct KeptWeights {
  int64_t epoch = 0;
  std::filesystem::path folder;  // with config.json and model.safetensors
};

// A quantity over the epochs, which may have fractions.
struct TrainingCurve {
  std::string event, quantity;  // "train", "loss"
  std::vector<double> epochs, values;
};

struct ExplainedRun {
  std::string name = {}, objective = {};
  std::vector<KeptWeights> models = {};  // by their epochs; of one architecture
  std::vector<TrainingCurve> curves = {};
  std::vector<LabelledImage> images = {};               // those that are followed: at least one
  std::vector<std::string> classes = {};                // names by index; may be empty
  std::vector<int64_t> held_out_labels = {};            // Without any, the page has no flips.
  std::function<LabelledImage(int64_t)> held_out = {};  // the i-th
  int threads = 0;
};

// options: detail and language.  progress(done, total): passes of images; it may throw.  Throws Error for a run without
// kept models or images, for models whose shapes differ, and for a file that cannot be read.
LearningPage explain_run(const ExplainedRun& run, const ExplainOptions& options, const ProgressCallback& progress = {});

}  // namespace vitrail::explain
