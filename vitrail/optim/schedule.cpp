// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "vitrail/base/error.h"

namespace vitrail::optim {

double cosine_between(double first, double last, double progress) {
  return last + (first - last) * ((1 + std::cos(std::numbers::pi * progress)) / 2);
}

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  const ScheduleOptions& o = options;
  if (o.kind != "cosine" && o.kind != "linear" && o.kind != "step" && o.kind != "constant") {
    throw Error("schedule", "cosine, linear, step or constant", "'" + o.kind + "'");
  }
  for (const double rate : {o.rate, o.final_rate, o.warmup_rate}) {
    if (!(rate >= 0) || !std::isfinite(rate)) throw Error("schedule", "rates of at least 0", str(rate));
  }
  if (o.warmup_steps < 0) throw Error("schedule", "a number of warm-up steps", str(o.warmup_steps));
  const bool ends = o.kind == "cosine" || o.kind == "linear";
  if (ends && o.total_steps <= 0) throw Error("schedule", "the run's number of steps", str(o.total_steps));
  if (ends && o.warmup_steps > o.total_steps) {
    throw Error("schedule", str("a warm-up within the run's ", o.total_steps, " steps"), str(o.warmup_steps));
  }
  if (o.kind == "step" && (o.decay_steps <= 0 || !(o.decay_factor > 0) || o.decay_factor > 1)) {
    throw Error("schedule", "decay_steps of at least 1 and a decay_factor in (0, 1]",
                str(o.decay_steps, " and ", o.decay_factor));
  }
}

double Schedule::rate(int64_t step) const {
  const ScheduleOptions& o = options_;
  if (step < o.warmup_steps) {
    return o.warmup_rate + (o.rate - o.warmup_rate) * static_cast<double>(step) / static_cast<double>(o.warmup_steps);
  }
  if (o.kind == "constant") return std::max(o.rate, o.final_rate);
  const int64_t begin = o.warmup_prefix ? o.warmup_steps : 0, s = step - begin;
  if (o.kind == "step") {
    return std::max(o.final_rate, o.rate * std::pow(o.decay_factor, static_cast<double>(s / o.decay_steps)));
  }
  const int64_t length = o.total_steps - begin;
  if (s >= length) return o.final_rate;
  const double p = static_cast<double>(s) / static_cast<double>(length);
  return o.kind == "linear" ? o.final_rate + (o.rate - o.final_rate) * (1 - p)
                            : cosine_between(o.rate, o.final_rate, p);
}

}  // namespace vitrail::optim
