// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers of the kernel benchmarks.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "benchmarks/roofline.h"

namespace vitrail::benchmarks {

inline std::vector<float> random_floats(int64_t n) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(engine);
  return values;
}

// The work of one iteration: operations (a multiply-add counts as two), and bytes read and written, each operand once.
struct Work {
  double operations, bytes;
  int threads = 1;
  Arithmetic arithmetic = Arithmetic::fp32;
};

// Reports GFLOP/s and the fraction of the roofline bound that was reached; the label names the limit.
inline void report_work(benchmark::State& state, const Work& work) {
  const Bound bound = roofline_bound(work.operations, work.bytes, work.threads, work.arithmetic);
  constexpr auto kRate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(work.operations * 1e-9, kRate);
  state.counters["of_bound"] = benchmark::Counter(bound.seconds(), kRate);
  state.SetLabel(bound.name());
}

}  // namespace vitrail::benchmarks
