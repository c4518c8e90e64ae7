// SPDX-License-Identifier: Apache-2.0
#pragma once
// How good a model is on labelled images.
#include <cstdint>
#include <functional>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::train {

// One image that got another answer than its label.
struct WrongAnswer {
  int64_t sample = 0, truth = 0, answer = 0;
  double confidence = 0, truth_confidence = 0;
};

struct Evaluation {
  int64_t images = 0, skipped = 0;              // skipped: could not be read
  double loss = 0;                              // mean cross-entropy with the labels
  double top1 = 0, top5 = 0;                    // fractions
  std::vector<std::vector<int64_t>> confusion;  // [truth][answer]
  std::vector<WrongAnswer> worst;               // the least probable truths first, at most kWorstAnswers
};

constexpr size_t kWorstAnswers = 24;
void keep_worst(std::vector<WrongAnswer>& worst);  // sorts, and cuts off what is too many

// Runs the loader's first epoch through the model, which is in eval mode afterwards.  The loader gives images in order
// and unaltered (data::evaluation_options).  `progress(done, total)` after each batch.
Evaluation evaluate(models::VisionTransformer& model, data::Loader& loader, int64_t classes,
                    const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace vitrail::train
