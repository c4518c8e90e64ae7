// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/isa/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vitrail::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::Feature;
using kernels::Isa;

// The minimum time in seconds of a few runs of `work` on all threads at once.
template <class Work>
double min_time(int threads, const Work& work) {
  const ThreadCount count(threads);
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = Clock::now();
    parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
      for (int64_t thread = first; thread < last; ++thread) work(thread);
    });
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

constexpr int64_t kRounds = 2'000'000;

struct Loop {
  void (*run)();
  double operations;  // per round, of kRounds
};

#if defined(__x86_64__)
// 12 independent accumulators hide the latency of a multiply-add at two multiply-adds per cycle.  The empty asm
// statements keep the compiler from removing results that are never read.
#define VITRAIL_ROUNDS(step)                                                                          \
  for (int64_t round = 0; round < kRounds; ++round) {                                                 \
    step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11) \
  }

__attribute__((target("sse4.1"))) void sse_loop() {
  __m128 accumulators[12] = {};
  const __m128 a = _mm_set1_ps(0.5f);
#define VITRAIL_STEP(i)                                            \
  accumulators[i] = _mm_add_ps(_mm_mul_ps(accumulators[i], a), a); \
  asm volatile("" : "+x"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx2,fma"))) void avx2_loop() {
  __m256 accumulators[12] = {};
  const __m256 a = _mm256_set1_ps(0.5f);
#define VITRAIL_STEP(i)                                     \
  accumulators[i] = _mm256_fmadd_ps(accumulators[i], a, a); \
  asm volatile("" : "+x"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512f"))) void avx512_loop() {
  __m512 accumulators[12] = {};
  const __m512 a = _mm512_set1_ps(0.5f);
#define VITRAIL_STEP(i)                                     \
  accumulators[i] = _mm512_fmadd_ps(accumulators[i], a, a); \
  asm volatile("" : "+v"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512bf16"))) void bf16_loop() {
  __m512 accumulators[12] = {};
  const __m512bh a = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00));  // 0.5
#define VITRAIL_STEP(i)                                      \
  accumulators[i] = _mm512_dpbf16_ps(accumulators[i], a, a); \
  asm volatile("" : "+v"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("sse4.1"))) void sse_int8_loop() {
  __m128i accumulators[12] = {};
  const __m128i a = _mm_set1_epi8(1), ones = _mm_set1_epi16(1);
#define VITRAIL_STEP(i)                                                                                          \
  accumulators[i] = _mm_add_epi32(accumulators[i], _mm_madd_epi16(_mm_maddubs_epi16(a, accumulators[i]), ones)); \
  asm volatile("" : "+x"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx2"))) void avx2_int8_loop() {
  __m256i accumulators[12] = {};
  const __m256i a = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
#define VITRAIL_STEP(i)                                                                                     \
  accumulators[i] =                                                                                         \
      _mm256_add_epi32(accumulators[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, accumulators[i]), ones)); \
  asm volatile("" : "+x"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512bw"))) void avx512_int8_loop() {
  __m512i accumulators[12] = {};
  const __m512i a = _mm512_set1_epi8(1), ones = _mm512_set1_epi16(1);
#define VITRAIL_STEP(i)                                                                                     \
  accumulators[i] =                                                                                         \
      _mm512_add_epi32(accumulators[i], _mm512_madd_epi16(_mm512_maddubs_epi16(a, accumulators[i]), ones)); \
  asm volatile("" : "+v"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512vnni"))) void vnni_loop() {
  __m512i accumulators[12] = {};
  const __m512i a = _mm512_set1_epi8(1);
#define VITRAIL_STEP(i)                                         \
  accumulators[i] = _mm512_dpbusd_epi32(accumulators[i], a, a); \
  asm volatile("" : "+v"(accumulators[i]));
  VITRAIL_ROUNDS(VITRAIL_STEP)
#undef VITRAIL_STEP
}

Loop loop_of(Arithmetic arithmetic) {
  const kernels::FeatureSet features = kernels::active_features();
  const bool avx2 = features.has(Feature::avx2), avx512 = features.has(Feature::avx512);
  if (arithmetic == Arithmetic::half && features.has(Feature::avx512_bf16)) return {bf16_loop, 12 * 64};
  if (arithmetic != Arithmetic::int8) {
    if (avx512) return {avx512_loop, 12 * 32};
    return avx2 ? Loop{avx2_loop, 12 * 16} : Loop{sse_loop, 12 * 8};
  }
  if (features.has(Feature::avx512_vnni)) return {vnni_loop, 12 * 128};
  if (avx512) return {avx512_int8_loop, 12 * 128};
  return avx2 ? Loop{avx2_int8_loop, 12 * 64} : Loop{sse_int8_loop, 12 * 32};
}
#else
void scalar_loop() {
  volatile float accumulator = 0;
  for (int64_t round = 0; round < kRounds; ++round) accumulator = accumulator * 0.5f + 0.5f;
}
Loop loop_of(Arithmetic) { return {scalar_loop, 2}; }
#endif

}  // namespace

double peak_rate(Arithmetic arithmetic, int threads) {
  static std::map<std::tuple<Isa, Arithmetic, int>, double> measured;
  double& rate = measured[{kernels::active_isa(), arithmetic, threads}];
  if (rate == 0) {
    const Loop loop = loop_of(arithmetic);
    rate = static_cast<double>(kRounds) * loop.operations * threads / min_time(threads, [&](int64_t) { loop.run(); });
  }
  return rate;
}

double copy_bandwidth(int64_t bytes, int threads) {
  static std::map<std::tuple<int64_t, int>, double> measured;
  double& rate = measured[{bytes, threads}];
  if (rate == 0) {
    const auto half = static_cast<size_t>(std::max<int64_t>(64, bytes / 2 / threads));
    const int64_t copies = 1 + (int64_t{1} << 26) / static_cast<int64_t>(half);
    std::vector<std::vector<char>> source(threads, std::vector<char>(half)), destination = source;
    const double seconds = min_time(threads, [&](int64_t thread) {
      for (int64_t i = 0; i < copies; ++i) {
        std::memcpy(destination[thread].data(), source[thread].data(), half);
        asm volatile("" : : "r"(destination[thread].data()) : "memory");
      }
    });
    rate = 2.0 * static_cast<double>(half) * static_cast<double>(copies) * threads / seconds;
  }
  return rate;
}

Bound roofline_bound(double operations, double bytes, int threads, Arithmetic arithmetic) {
  return {operations / peak_rate(arithmetic, threads), bytes / copy_bandwidth(static_cast<int64_t>(bytes), threads)};
}

}  // namespace vitrail::benchmarks
