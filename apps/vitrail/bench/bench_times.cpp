// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/bench/bench_times.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "vitrail/kernels/isa/isa.h"

namespace vitrail::app {

using Clock = std::chrono::steady_clock;

std::vector<double> time_calls(const std::function<void()>& call, double seconds, const TimedRuns& runs) {
  for (int i = 0; i < runs.warm_up; ++i) call();
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end || times.size() < runs.min) {
    const auto start = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

double median_of(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

std::string measured_on(const std::string& model, int threads) {
  return model + ", " + std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") +
         kernels::name_of(kernels::active_isa());
}

nlohmann::ordered_json row_of(const Measurement& measurement) {
  const double median = median_of(measurement.times);
  return {{"model", measurement.model},
          {"task", measurement.task},
          {"batch", measurement.batch},
          {"precision", measurement.precision},
          {"arithmetic", measurement.arithmetic},
          {"threads", measurement.threads},
          {"isa", kernels::name_of(kernels::active_isa())},
          {"runs", measurement.times.size()},
          {"min_ms", measurement.times.front()},
          {"median_ms", median},
          {"images_per_second", 1e3 * static_cast<double>(measurement.batch) / median},
          {"peak_rss_mb", peak_rss_mb()}};
}

double peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

}  // namespace vitrail::app
