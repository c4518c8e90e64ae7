// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning rate as a function of the step.
#include <cstdint>
#include <string>

namespace vitrail::optim {

struct ScheduleOptions {
  std::string kind = "cosine";  // cosine (Loshchilov & Hutter 2017), linear, step or constant
  double rate = 1e-3;           // after the warm-up
  double final_rate = 0;        // cosine and linear end here; step and constant do not go below it
  int64_t total_steps = 0;      // of the whole run, warm-up included
  int64_t warmup_steps = 0;     // linear from warmup_rate to rate
  double warmup_rate = 0;       // of step 0
  // Whether the decay begins after the warm-up; else it runs from step 0 and the warm-up hides its beginning (both are
  // timm's, under this name; DeiT trained with the latter).
  bool warmup_prefix = true;
  int64_t decay_steps = 0;    // step: the rate is multiplied by decay_factor every so many steps
  double decay_factor = 0.1;  // step
};

// A pure function: there is no state to save.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);  // throws Error on an unknown kind or an option out of range
  // With s = step (less the warm-up when that is a prefix) and p = s / (steps that the decay has):
  //   cosine   final + (rate − final) (1 + cos πp) / 2
  //   linear   final + (rate − final) (1 − p)
  //   step     rate · decay_factor^⌊s / decay_steps⌋
  // p stays 1 beyond the end.
  double rate(int64_t step) const;
  const ScheduleOptions& options() const { return options_; }

 private:
  ScheduleOptions options_;
};

}  // namespace vitrail::optim
