// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/machine_bounds.h"

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

// The least time of a few runs, in seconds, of `work` on every thread at once.
template <class Work>
double least_time(int threads, const Work& work) {
  const ThreadCount count(threads);
  double least = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = Clock::now();
    parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
      for (int64_t thread = first; thread < last; ++thread) work(thread);
    });
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

constexpr int64_t kRounds = 2'000'000;

// Each does kRounds × operations, whose results go nowhere.
struct Loop {
  void (*run)();
  double operations;  // of a round
};

#if defined(__x86_64__)
// 12 sums: more than the latency of a multiply-add times the two that begin in a cycle.
#define VITRAIL_SUMS(step)                                                                            \
  for (int64_t round = 0; round < kRounds; ++round) {                                                 \
    step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11) \
  }

__attribute__((target("sse4.1"))) void sse_loop() {
  __m128 sums[12] = {};
  const __m128 a = _mm_set1_ps(0.5f);
#define VITRAIL_STEP(i)                            \
  sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], a), a); \
  asm volatile("" : "+x"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx2,fma"))) void avx2_loop() {
  __m256 sums[12] = {};
  const __m256 a = _mm256_set1_ps(0.5f);
#define VITRAIL_STEP(i)                     \
  sums[i] = _mm256_fmadd_ps(sums[i], a, a); \
  asm volatile("" : "+x"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512f"))) void avx512_loop() {
  __m512 sums[12] = {};
  const __m512 a = _mm512_set1_ps(0.5f);
#define VITRAIL_STEP(i)                     \
  sums[i] = _mm512_fmadd_ps(sums[i], a, a); \
  asm volatile("" : "+v"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512bf16"))) void bf16_loop() {
  __m512 sums[12] = {};
  const __m512bh a = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00));  // 0.5
#define VITRAIL_STEP(i)                      \
  sums[i] = _mm512_dpbf16_ps(sums[i], a, a); \
  asm volatile("" : "+v"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("sse4.1"))) void sse_bytes_loop() {
  __m128i sums[12] = {};
  const __m128i a = _mm_set1_epi8(1), ones = _mm_set1_epi16(1);
#define VITRAIL_STEP(i)                                                                  \
  sums[i] = _mm_add_epi32(sums[i], _mm_madd_epi16(_mm_maddubs_epi16(a, sums[i]), ones)); \
  asm volatile("" : "+x"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx2"))) void avx2_bytes_loop() {
  __m256i sums[12] = {};
  const __m256i a = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
#define VITRAIL_STEP(i)                                                                           \
  sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, sums[i]), ones)); \
  asm volatile("" : "+x"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512bw"))) void avx512_bytes_loop() {
  __m512i sums[12] = {};
  const __m512i a = _mm512_set1_epi8(1), ones = _mm512_set1_epi16(1);
#define VITRAIL_STEP(i)                                                                           \
  sums[i] = _mm512_add_epi32(sums[i], _mm512_madd_epi16(_mm512_maddubs_epi16(a, sums[i]), ones)); \
  asm volatile("" : "+v"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}
__attribute__((target("avx512vnni"))) void vnni_loop() {
  __m512i sums[12] = {};
  const __m512i a = _mm512_set1_epi8(1);
#define VITRAIL_STEP(i)                         \
  sums[i] = _mm512_dpbusd_epi32(sums[i], a, a); \
  asm volatile("" : "+v"(sums[i]));
  VITRAIL_SUMS(VITRAIL_STEP)
#undef VITRAIL_STEP
}

Loop loop_of(Arithmetic arithmetic) {
  const kernels::FeatureSet features = kernels::active_features();
  const bool avx2 = features.has(Feature::avx2), avx512 = features.has(Feature::avx512);
  if (arithmetic == Arithmetic::bf16 && features.has(Feature::avx512_bf16)) return {bf16_loop, 12 * 64};
  if (arithmetic != Arithmetic::bytes) {
    if (avx512) return {avx512_loop, 12 * 32};
    return avx2 ? Loop{avx2_loop, 12 * 16} : Loop{sse_loop, 12 * 8};
  }
  if (features.has(Feature::avx512_vnni)) return {vnni_loop, 12 * 128};
  if (avx512) return {avx512_bytes_loop, 12 * 128};
  return avx2 ? Loop{avx2_bytes_loop, 12 * 64} : Loop{sse_bytes_loop, 12 * 32};
}
#else
void plain_loop() {
  volatile float sum = 0;
  for (int64_t round = 0; round < kRounds; ++round) sum = sum * 0.5f + 0.5f;
}
Loop loop_of(Arithmetic) { return {plain_loop, 2}; }
#endif

}  // namespace

double peak_rate(Arithmetic arithmetic, int threads) {
  static std::map<std::tuple<Isa, Arithmetic, int>, double> known;
  double& rate = known[{kernels::active_isa(), arithmetic, threads}];
  if (rate == 0) {
    const Loop loop = loop_of(arithmetic);
    rate = static_cast<double>(kRounds) * loop.operations * threads / least_time(threads, [&](int64_t) { loop.run(); });
  }
  return rate;
}

double copy_rate(int64_t bytes, int threads) {
  static std::map<std::tuple<int64_t, int>, double> known;
  double& rate = known[{bytes, threads}];
  if (rate == 0) {
    const auto half = static_cast<size_t>(std::max<int64_t>(64, bytes / 2 / threads));
    const int64_t times = 1 + (int64_t{1} << 26) / static_cast<int64_t>(half);
    std::vector<std::vector<char>> from(threads, std::vector<char>(half)), to = from;
    const double seconds = least_time(threads, [&](int64_t thread) {
      for (int64_t i = 0; i < times; ++i) {
        std::memcpy(to[thread].data(), from[thread].data(), half);
        asm volatile("" : : "r"(to[thread].data()) : "memory");
      }
    });
    rate = 2.0 * static_cast<double>(half) * static_cast<double>(times) * threads / seconds;
  }
  return rate;
}

Bound bound_of(double operations, double bytes, int threads, Arithmetic arithmetic) {
  return {operations / peak_rate(arithmetic, threads), bytes / copy_rate(static_cast<int64_t>(bytes), threads)};
}

}  // namespace vitrail::benchmarks
