// SPDX-License-Identifier: Apache-2.0
// Attention on the fused q, k, v of ViT-Ti, S and B.  Arguments: batch, heads, tokens, threads.
#include "benchmarks/kernel_benchmark.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/attention/attention.h"

namespace vitrail::benchmarks {
namespace {

void attention(benchmark::State& state, kernels::Precision precision, Arithmetic arithmetic) {
  const int64_t batch = state.range(0), heads = state.range(1), tokens = state.range(2), dim = 64;
  ThreadCount threads(static_cast<int>(state.range(3)));
  const int64_t width = heads * dim, stride = 3 * width;  // qkv [B, N, 3, H, D]
  const std::vector<float> qkv = random_floats(batch * tokens * stride);
  std::vector<float> out(batch * tokens * width);
  kernels::AttentionArgs args{.batch = batch, .heads = heads, .queries = tokens, .keys = tokens, .head_dim = dim};
  args.scale = 0.125f;
  args.precision = precision;
  args.q = {qkv.data(), tokens * stride, dim, stride};
  args.k = {qkv.data() + width, tokens * stride, dim, stride};
  args.v = {qkv.data() + 2 * width, tokens * stride, dim, stride};
  args.out = {out.data(), tokens * width, dim, width};
  for (auto _ : state) kernels::attention(args);
  report_work(state, {.operations = 4.0 * static_cast<double>(batch * heads * tokens * tokens * dim),
                      .bytes = 4.0 * static_cast<double>(batch * tokens * (stride + width)),
                      .threads = static_cast<int>(state.range(3)),
                      .arithmetic = arithmetic});
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t threads : {1, available_threads()}) {
    for (int64_t batch : {1, 8}) {
      for (int64_t heads : {3, 6, 12}) benchmark->Args({batch, heads, 197, threads});
    }
    benchmark->Args({1, 12, 1370, threads});  // DINOv2-B at 518 × 518
  }
  benchmark->UseRealTime();
}

BENCHMARK_CAPTURE(attention, fp32, kernels::Precision::fp32, Arithmetic::fp32)->Apply(shapes);
BENCHMARK_CAPTURE(attention, half, kernels::Precision::half, Arithmetic::half)->Apply(shapes);

}  // namespace
}  // namespace vitrail::benchmarks
