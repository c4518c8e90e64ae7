// SPDX-License-Identifier: Apache-2.0
#pragma once
// Durations and memory of `vitrail bench`.
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vitrail::app {

struct TimedRuns {
  int warm_up = 3;
  size_t min = 5;  // after warm-up, however long they take
};

// The duration of each call in milliseconds, sorted.  Calls for about `seconds`.
std::vector<double> time_calls(const std::function<void()>& call, double seconds, const TimedRuns& runs = {});

double median_of(const std::vector<double>& sorted);

// "vit_tiny_patch16_224, 2 threads, avx512": the line above a table of measurements.
std::string measured_on(const std::string& model, int threads);

struct Measurement {
  std::string model, task;  // task: "forward", "train", or what the model is for
  int64_t batch = 1;
  std::string precision, arithmetic;
  int threads = 1;
  std::vector<double> times;  // as of time_calls()
};

// What rows of all families have.
nlohmann::ordered_json row_of(const Measurement& measurement);

// The largest resident memory of the process so far.
double peak_rss_mb();

}  // namespace vitrail::app
