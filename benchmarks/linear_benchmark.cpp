// SPDX-License-Identifier: Apache-2.0
// The linear layers of ViT-Ti, S and B at batch 1 and 8: every GEMM of PackedLinear, and sgemm of oneDNN.
// Arguments: rows, in, out, threads.
#include "benchmarks/kernel_benchmark.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::benchmarks {
namespace {

using namespace kernels;

struct Operands {
  int64_t rows, in, out;
  std::vector<float> x, weight, bias, y;
  explicit Operands(const benchmark::State& state)
      : rows(state.range(0)),
        in(state.range(1)),
        out(state.range(2)),
        x(random_floats(rows * in)),
        weight(random_floats(out * in)),
        bias(random_floats(out)),
        y(rows * out) {}
  Work work(const benchmark::State& state, Arithmetic arithmetic = Arithmetic::fp32) const {
    return {.operations = 2.0 * static_cast<double>(rows * in * out),
            .bytes = 4.0 * static_cast<double>(rows * in + in * out + rows * out),
            .threads = static_cast<int>(state.range(3)),
            .arithmetic = arithmetic};
  }
};

using Maker = std::unique_ptr<PackedGemm> (*)(const float*, const float*, int64_t, int64_t);

void linear(benchmark::State& state, Maker maker, Activation activation, Arithmetic arithmetic = Arithmetic::fp32) {
  Operands o(state);
  ThreadCount threads(static_cast<int>(state.range(3)));
  if (active_isa() == Isa::scalar) return state.SkipWithError("VITRAIL_CPU is scalar");
  const auto gemm = maker(o.weight.data(), o.bias.data(), o.out, o.in);
  if (!gemm) return state.SkipWithError("not available on this processor or in this build");
  std::vector<std::byte> scratch(gemm->scratch_bytes({.count = o.rows}) + 64);
  auto* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
  const GemmArgs args{.x = {o.x.data(), o.in},
                      .y = {o.y.data(), o.out},
                      .rows = {.count = o.rows},
                      .epilogue = {.activation = activation},
                      .scratch = aligned};
  for (auto _ : state) gemm->run(args);
  report_work(state, o.work(state, arithmetic));
}

void sgemm(benchmark::State& state) {
  Operands o(state);
  ThreadCount threads(static_cast<int>(state.range(3)));
  active_isa();
  if (!onednn::available()) return state.SkipWithError("built without oneDNN");
  for (auto _ : state) {
    onednn::sgemm(false, true, o.rows, o.out, o.in, o.x.data(), o.in, o.weight.data(), o.in, false, o.y.data(), o.out);
  }
  report_work(state, o.work(state));
}

void linear_shapes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t rows : {197, 8 * 197}) {
    for (int64_t dim : {192, 384, 768}) {
      for (const auto& [in, out] : {std::pair{dim, 3 * dim}, {dim, dim}, {dim, 4 * dim}, {4 * dim, dim}}) {
        for (int64_t threads : {1, available_threads()}) benchmark->Args({rows, in, out, threads});
      }
    }
  }
  benchmark->UseRealTime();
}

std::unique_ptr<PackedGemm> make_int8_maddubs(const float* weight, const float* bias, int64_t out, int64_t in) {
  return make_int8_gemm(weight, bias, out, in, int8_microkernel());
}
std::unique_ptr<PackedGemm> make_int8_vnni(const float* weight, const float* bias, int64_t out, int64_t in) {
  if (!active_features().has(Feature::avx512_vnni)) return nullptr;
  return make_int8_gemm(weight, bias, out, in, vnni_microkernel());
}

std::unique_ptr<PackedGemm> make_int16(const float* weight, const float* bias, int64_t out, int64_t in) {
  if (!active_features().has(Feature::avx512_vnni)) return nullptr;
  return make_int16_gemm(weight, bias, out, in, int16_microkernel());
}

BENCHMARK_CAPTURE(linear, fp32, make_fp32_gemm, Activation::none)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, fp32_gelu, make_fp32_gemm, Activation::gelu)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, int8_maddubs, make_int8_maddubs, Activation::none, Arithmetic::int8)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, int8_maddubs_gelu, make_int8_maddubs, Activation::gelu, Arithmetic::int8)
    ->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, int8_vnni, make_int8_vnni, Activation::none, Arithmetic::int8)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, int8_vnni_gelu, make_int8_vnni, Activation::gelu, Arithmetic::int8)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, int16_vnni, make_int16, Activation::none, Arithmetic::half)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, int16_vnni_gelu, make_int16, Activation::gelu, Arithmetic::half)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, onednn, make_onednn_gemm, Activation::none)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, onednn_gelu, make_onednn_gemm, Activation::gelu)->Apply(linear_shapes);
BENCHMARK(sgemm)->Apply(linear_shapes);

}  // namespace
}  // namespace vitrail::benchmarks
