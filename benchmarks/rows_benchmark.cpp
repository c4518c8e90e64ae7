// The kernels that go over memory once: LayerNorm, softmax, activations.  Arguments: rows, columns.  One thread.
#include "benchmarks/kernel_benchmark.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/activation.h"
#include "vitrail/kernels/layer_norm.h"
#include "vitrail/kernels/softmax.h"

namespace vitrail::benchmarks {
namespace {

struct Rows {
  int64_t rows, columns;
  std::vector<float> x, y, out, norm;
  ThreadCount one{1};
  explicit Rows(const benchmark::State& state)
      : rows(state.range(0)),
        columns(state.range(1)),
        x(random_floats(rows * columns)),
        y(random_floats(rows * columns)),
        out(rows * columns),
        norm(rows * columns) {}
  void count(benchmark::State& state) const {
    state.counters["ns/element"] =
        benchmark::Counter(static_cast<double>(rows * columns) * 1e-9,
                           benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  }
};

void layer_norm(benchmark::State& state) {
  Rows r(state);
  for (auto _ : state) {
    kernels::layer_norm(r.x.data(), r.columns, r.y.data(), r.y.data(), 1e-6f, r.norm.data(), r.columns, r.rows,
                        r.columns);
  }
  r.count(state);
}

void residual_layer_norm(benchmark::State& state) {
  Rows r(state);
  for (auto _ : state) {
    kernels::residual_layer_norm(r.x.data(), r.y.data(), nullptr, r.y.data(), r.y.data(), 1e-6f, r.out.data(),
                                 r.norm.data(), r.rows, r.columns);
  }
  r.count(state);
}

void softmax(benchmark::State& state) {
  Rows r(state);
  for (auto _ : state) kernels::softmax(r.x.data(), r.y.data(), r.rows, r.columns);
  r.count(state);
}

void activation(benchmark::State& state, kernels::Activation kind) {
  Rows r(state);
  for (auto _ : state) kernels::activate(kind, r.x.data(), r.y.data(), r.rows * r.columns);
  r.count(state);
}

using kernels::Activation;
BENCHMARK(layer_norm)->Args({197, 192})->Args({197, 768});
BENCHMARK(residual_layer_norm)->Args({197, 192})->Args({197, 768});
BENCHMARK(softmax)->Args({591, 197});
BENCHMARK_CAPTURE(activation, gelu, Activation::gelu)->Args({197, 768});
BENCHMARK_CAPTURE(activation, gelu_tanh, Activation::gelu_tanh)->Args({197, 768});
BENCHMARK_CAPTURE(activation, quick_gelu, Activation::quick_gelu)->Args({197, 768});
BENCHMARK_CAPTURE(activation, silu, Activation::silu)->Args({197, 768});

}  // namespace
}  // namespace vitrail::benchmarks
