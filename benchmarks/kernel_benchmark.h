#pragma once
// What the kernel benchmarks share.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

namespace vitrail::benchmarks {

inline std::vector<float> random_floats(int64_t n) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(engine);
  return values;
}

// Reports GFLOP/s from the operations of one iteration.
inline void count_operations(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] = benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace vitrail::benchmarks
