// SPDX-License-Identifier: Apache-2.0
#pragma once
// A running average of the weights (Polyak & Juditsky 1992), as timm.utils.ModelEmaV3 keeps it.
#include <cstdint>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::optim {

struct EmaOptions {
  double decay = 0.9999;
  // With warm-up the decay after s updates is 1 − (1 + s / gamma)^(−power), at least min_decay and at most decay.
  bool warmup = false;
  double warmup_gamma = 1, warmup_power = 2.0 / 3, min_decay = 0;
  int64_t after_step = 0;  // until then the average is a copy of the weights
};

class Ema {
 public:
  // Begins as a copy of these weights (f32 or f64, contiguous), and holds on to them: update() reads what is in them.
  Ema(std::vector<nn::NamedTensor> weights, const EmaOptions& options);

  // average ← decay · average + (1 − decay) · weights.  `step`: how many optimiser steps have been made, so 1 after the
  // first, which is a copy.
  void update(int64_t step);
  double decay(int64_t step) const;

  // Exchanges weights and average, for an evaluation of the average in the model itself; a second call undoes it.
  void swap() const;

  const std::vector<nn::NamedTensor>& average() const { return average_; }  // its own tensors, for checkpoints
  // Copies an average in; missing, unexpected and misshapen names are listed in one Error and nothing is changed then.
  void load(const std::vector<nn::NamedTensor>& average);

 private:
  std::vector<nn::NamedTensor> weights_, average_;
  EmaOptions options_;
};

}  // namespace vitrail::optim
