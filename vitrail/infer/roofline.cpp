// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/roofline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "vitrail/base/cache_size_internal.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"

namespace vitrail::infer {
namespace {

using kernels::Arithmetic;
using kernels::PackedLinear;
using kernels::Precision;
using Clock = std::chrono::steady_clock;

constexpr std::array kLimits{"compute", "cache", "memory"};
static_assert(kLimits.size() == static_cast<size_t>(Limit::memory) + 1, "one name per limit, in its order");

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Minimum times in seconds of several runs of work(thread) on all threads at once.
struct MinTimes {
  std::vector<double> own;  // one for each thread
  double together = 1e9;    // until the last thread has ended

  // Calls per second, if each thread has a core to itself.  Another process can take a core during every run.
  double calls_per_second() const {
    double rate = 0;
    for (const double seconds : own) rate += 1 / seconds;
    return rate;
  }
};

template <class Work>
MinTimes min_times(int threads, const Work& work) {
  constexpr int kMinRuns = 2;
  constexpr double kSeconds = 0.15;
  const ComputeTeam team(threads);
  MinTimes best{.own = std::vector<double>(static_cast<size_t>(threads), 1e9)};
  const auto begin = Clock::now();
  for (int run = 0; run < kMinRuns || seconds_since(begin) < kSeconds; ++run) {
    const auto start = Clock::now();
    parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
      for (auto thread = static_cast<size_t>(first); thread < static_cast<size_t>(last); ++thread) {
        const auto own_start = Clock::now();
        work(thread);
        best.own[thread] = std::min(best.own[thread], seconds_since(own_start));
      }
    });
    best.together = std::min(best.together, seconds_since(start));
  }
  return best;
}

// A thread's operands of y = x Wᵀ + b.
struct GemmOperands {
  std::vector<float> x, y;
  kernels::AlignedArray<std::byte> scratch;
};

// Every thread multiplies rows of its own by the same weight.  In int8, long rows make up for their quantisation.
std::pair<Arithmetic, double> measure_gemm(Precision precision, int threads) {
  constexpr int64_t kRows = 192, kOut = 768;
  const int64_t in = precision == Precision::int8 ? 768 : 384;
  const std::vector<float> weight(static_cast<size_t>(kOut * in), 0.5f), bias(static_cast<size_t>(kOut), 0.5f);
  const PackedLinear linear(weight.data(), bias.data(), kOut, in, precision);
  const kernels::LinearRows rows{.count = kRows};
  std::vector<GemmOperands> operands(static_cast<size_t>(threads));
  for (GemmOperands& own : operands) {
    own.x.assign(static_cast<size_t>(kRows * in), 0.5f);
    own.y.resize(static_cast<size_t>(kRows * kOut));
    own.scratch = kernels::aligned_array<std::byte>(static_cast<int64_t>(linear.scratch_bytes(rows)));
  }
  const MinTimes times = min_times(threads, [&](size_t thread) {
    GemmOperands& own = operands[thread];
    linear.run({own.x.data(), in}, {own.y.data(), kOut}, rows, {}, own.scratch.get());
  });
  return {linear.arithmetic(), 2.0 * static_cast<double>(kRows * in * kOut) * times.calls_per_second()};
}

// Every thread copies between buffers of its own, of `bytes` together, `repeats` times per run.
MinTimes time_copies(size_t bytes, int threads, int repeats) {
  const size_t half = bytes / 2;
  std::vector<std::vector<std::byte>> from(static_cast<size_t>(threads), std::vector<std::byte>(half)), to = from;
  return min_times(threads, [&](size_t thread) {
    for (int i = 0; i < repeats; ++i) {
      std::memcpy(to[thread].data(), from[thread].data(), half);
      asm volatile("" : : "r"(to[thread].data()) : "memory");  // the copy is not removed
    }
  });
}

Precision precision_of(Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::int8) return Precision::int8;
  return arithmetic == Arithmetic::fp32 ? Precision::fp32 : Precision::half;
}

}  // namespace

const char* name_of(Limit limit) { return kLimits[static_cast<size_t>(limit)]; }

double Roofline::gemm_rate(Arithmetic arithmetic) {
  const Precision precision = precision_of(arithmetic);
  if (!measured_.contains(precision)) {
    const auto [measured, rate] = measure_gemm(precision, threads_);
    measured_[precision] = measured;
    gemm_rates_.emplace(measured, rate);
  }
  return gemm_rates_.at(measured_.at(precision));
}

double Roofline::cache_rate() {
  constexpr size_t kBytes = size_t{1} << 20;
  constexpr int kRepeats = 32;
  if (cache_rate_ == 0) {
    cache_rate_ = static_cast<double>(kBytes) * kRepeats * time_copies(kBytes, threads_, kRepeats).calls_per_second();
  }
  return cache_rate_;
}

double Roofline::memory_rate() {
  constexpr size_t kMin = size_t{64} << 20, kMax = size_t{1} << 30;
  if (memory_rate_ == 0) {
    const size_t bytes = std::clamp(4 * last_level_cache_bytes(), kMin, kMax);
    // Threads share the memory: one that runs alone is faster.
    const MinTimes times = time_copies(bytes / static_cast<size_t>(threads_), threads_, 1);
    memory_rate_ = static_cast<double>(bytes) / times.together;
  }
  return memory_rate_;
}

StepBound Roofline::bound_of(const Step& step) {
  const bool cached = step.bytes <= static_cast<double>(last_level_cache_bytes());
  const double transfer = step.bytes / (cached ? cache_rate() : memory_rate());
  const double compute = step.flops > 0 ? step.flops / gemm_rate(step.kernel.arithmetic) : 0;
  if (compute > transfer) return {compute, Limit::compute};
  return {transfer, cached ? Limit::cache : Limit::memory};
}

}  // namespace vitrail::infer
