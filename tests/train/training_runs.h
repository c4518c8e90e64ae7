// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training runs, and a comparison of two.
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

inline TrainingResult train_to(const fs::path& folder, const Recipe& recipe, bool resume = false,
                               std::optional<int> stop_after = std::nullopt, int threads = 2) {
  int steps = 0;
  TrainerCallbacks callbacks;
  if (stop_after) callbacks.stop = [&] { return ++steps >= *stop_after; };
  return train(recipe, {.folder = folder, .resume = resume, .threads = threads}, callbacks);
}

// Expects that both runs ended with the same weights, optimiser state, EMA weights and metrics.
inline void expect_same_runs(const fs::path& a, const fs::path& b) {
  const CheckpointState first = load_checkpoint(a / "checkpoints/last.safetensors");
  const CheckpointState second = load_checkpoint(b / "checkpoints/last.safetensors");
  EXPECT_EQ(first.position.step, second.position.step);
  for (const auto& [x, y] :
       {std::pair{first.model, second.model}, {first.optimizer, second.optimizer}, {first.average, second.average}}) {
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(x[i].name, y[i].name);
      EXPECT_TRUE(testing::close(x[i].tensor, y[i].tensor, 0)) << x[i].name;
    }
  }
  EXPECT_EQ(deterministic_columns(a / "metrics.csv"), deterministic_columns(b / "metrics.csv"));
  EXPECT_EQ(read_text(a / "model/model.safetensors"), read_text(b / "model/model.safetensors"));
}

}  // namespace vitrail::train
