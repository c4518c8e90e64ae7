// SPDX-License-Identifier: Apache-2.0
#pragma once
// Roofline model (Williams et al. 2009): a lower bound for the time of a step, from rates measured on this machine.
#include <cstdint>
#include <map>

#include "vitrail/infer/program.h"

namespace vitrail::infer {

// What bounds the rate of a step: the GEMM rate, or the rate of a copy in the caches or in memory.
enum class Limit : uint8_t { compute, cache, memory };
const char* name_of(Limit limit);

struct StepBound {
  double seconds;
  Limit limit;
};

// Measures each rate when it is first asked for, in 0.1 to 0.3 s, on all its threads at once.  The rates are the best
// of several runs.  Not for use by several threads at once.
class Roofline {
 public:
  explicit Roofline(int threads) : threads_(threads) {}

  int threads() const { return threads_; }

  // Operations per second (a multiply-add counts two) of the packed GEMM on operands that fit the caches.  int16 and
  // bf16 share the rate of Precision::half.
  double gemm_rate(kernels::Arithmetic arithmetic);
  // Bytes per second of a copy, reads and writes together, of 1 MiB per thread and of more than the last-level cache.
  double cache_rate();
  double memory_rate();

  // max(operations / GEMM rate, bytes / copy rate).  The copy rate is that of the caches if the step's bytes fit the
  // last-level cache.  A step that reads much more than it writes, or whose operands fit an inner cache, can be faster.
  StepBound bound_of(const Step& step);

  // The GEMM rates that were measured, by what the GEMM multiplied.
  const std::map<kernels::Arithmetic, double>& gemm_rates() const { return gemm_rates_; }

 private:
  int threads_;
  std::map<kernels::Arithmetic, double> gemm_rates_;
  std::map<kernels::Precision, kernels::Arithmetic> measured_;
  double cache_rate_ = 0, memory_rate_ = 0;  // 0: not measured
};

}  // namespace vitrail::infer
