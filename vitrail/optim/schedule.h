// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules of the learning rate and of other values, evaluated per optimiser step.
#include <cstdint>
#include <string>

namespace vitrail::optim {

// From `first` to `last` along half a cosine (Loshchilov & Hutter 2017, equation 5).  progress: from 0 to 1.
double cosine_between(double first, double last, double progress);

struct ScheduleOptions {
  std::string kind = "cosine";  // cosine (Loshchilov & Hutter 2017, SGDR, without restarts), linear, step or constant
  double rate = 1e-3;           // peak learning rate, after the warm-up
  double final_rate = 0;        // cosine and linear: the last rate; step and constant: a lower bound
  int64_t total_steps = 0;      // length of the run, warm-up included
  int64_t warmup_steps = 0;     // the rate rises linearly from warmup_rate to rate
  double warmup_rate = 0;       // at step 0
  // As timm: true starts the decay after the warm-up; false starts it at step 0 and the warm-up replaces its first
  // steps (as DeiT was trained).
  bool warmup_prefix = true;
  int64_t decay_steps = 0;    // step: steps between two decays
  double decay_factor = 0.1;  // step: factor of each decay
};

// A pure function of the step, without state.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);  // throws Error for an unknown kind or an option out of range

  // Let s = step − warmup_steps, or s = step without warmup_prefix, and p = min(1, s / number of decay steps):
  //   cosine   final + (rate − final) (1 + cos πp) / 2   (Loshchilov & Hutter 2017, equation 5)
  //   linear   final + (rate − final) (1 − p)
  //   step     rate · decay_factor^⌊s / decay_steps⌋
  double rate(int64_t step) const;
  const ScheduleOptions& options() const { return options_; }

 private:
  ScheduleOptions options_;
};

}  // namespace vitrail::optim
