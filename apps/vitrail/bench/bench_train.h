// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::app {

// The cost of a training step (forward, cross-entropy, backward, AdamW) on random images and labels.
struct TrainingTimes {
  std::vector<double> milliseconds;  // duration of each step, sorted
  double flops = 0;                  // GEMM operations of one step: three times those of the forward pass
};

struct TrainingSetup {
  int64_t batch = 1;
  std::optional<std::array<int64_t, 2>> image_size = {};  // height, width; none: the model's
  int threads = 1;
  DType precision = DType::f32;  // f32, or bf16 for mixed precision
};

// Trains `model`, which has a head, for about `seconds`, and for at least five steps after three warm-up steps.
TrainingTimes time_training(models::VisionTransformer& model, const TrainingSetup& setup, double seconds);

// Prints the time of each phase (forward, backward, optimiser) and of the backward pass of each operation.
void print_training_profile(models::VisionTransformer& model, const TrainingSetup& setup);

}  // namespace vitrail::app
