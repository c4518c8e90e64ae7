// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exponential moving average (EMA) of the weights, as timm.utils.ModelEmaV3 (after Polyak & Juditsky 1992).
#include <cstdint>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::optim {

struct EmaOptions {
  double decay = 0.9999;
  // With warm-up, the decay after s updates is 1 − (1 + s / gamma)^(−power), limited to [min_decay, decay].
  bool warmup = false;
  double warmup_gamma = 1, warmup_power = 2.0 / 3, min_decay = 0;
  int64_t after_step = 0;  // up to this optimiser step the average is a copy of the weights
};

// average ← decay · average + (1 − decay) · weights, of pairs of tensors (f32 or f64, contiguous).
void update_average(const std::vector<nn::NamedTensor>& average, const std::vector<nn::NamedTensor>& weights,
                    double decay);

class Ema {
 public:
  // Starts with a copy of the weights (f32 or f64, contiguous).  Keeps the tensors themselves: update() reads them.
  // Throws Error for other weights and for options out of range.
  Ema(std::vector<nn::NamedTensor> weights, const EmaOptions& options);

  // average ← decay(step) · average + (1 − decay(step)) · weights.  `step`: the number of optimiser steps so far.  The
  // first update (step 1) copies the weights.
  void update(int64_t step);
  double decay(int64_t step) const;

  // Whether the average has left its start behind: at most 1/e of it is still its first copy.  With a constant decay
  // this takes 1 / (1 − decay) updates.
  bool warmed_up(int64_t step) const;

  // Exchanges weights and average, to evaluate the average in the model; a second call restores both.
  void swap() const;

  const std::vector<nn::NamedTensor>& average() const { return average_; }  // not copies; for checkpoints
  // Copies a saved average in.  Throws one Error that lists all missing, unexpected and misshapen tensors, and then
  // changes nothing.
  void load(const std::vector<nn::NamedTensor>& average);

 private:
  std::vector<nn::NamedTensor> weights_, average_;
  EmaOptions options_;
};

}  // namespace vitrail::optim
