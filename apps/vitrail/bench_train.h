#pragma once
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::app {

// What one optimisation step costs: forward, cross-entropy, backward, AdamW on random images and labels.
struct TrainingTimes {
  std::vector<double> milliseconds;  // of each step, sorted
  double flops = 0;                  // of the products of one step, three times those of the forward pass
};

// Trains `model` for about `seconds`, at least five steps after three that are not timed, on batches of `batch`.
TrainingTimes time_training(models::VisionTransformer& model, int64_t batch, int threads, double seconds);

// The same as text: the share of each kind of operation.
void print_training_profile(models::VisionTransformer& model, int64_t batch, int threads);

}  // namespace vitrail::app
