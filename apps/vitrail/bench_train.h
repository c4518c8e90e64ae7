// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::app {

// What one optimisation step costs: forward, cross-entropy, backward, AdamW on random images and labels.
struct TrainingTimes {
  std::vector<double> milliseconds;  // of each step, sorted
  double flops = 0;                  // of the products of one step, three times those of the forward pass
};

struct TrainingSetup {
  int64_t batch = 1;
  int threads = 1;
  DType precision = DType::f32;  // or bf16, of products
};

// Trains `model` for about `seconds`, at least five steps after three that are not timed.
TrainingTimes time_training(models::VisionTransformer& model, const TrainingSetup& setup, double seconds);

// The same as text: the share of each part and kind of operation.
void print_training_profile(models::VisionTransformer& model, const TrainingSetup& setup);

}  // namespace vitrail::app
