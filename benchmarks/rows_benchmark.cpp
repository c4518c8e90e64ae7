// SPDX-License-Identifier: Apache-2.0
// Row-wise kernels: LayerNorm, softmax, activations.  Arguments: rows, columns.  One thread.
#include "benchmarks/kernel_benchmark.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/kernels/rowwise/layer_norm.h"
#include "vitrail/kernels/rowwise/softmax.h"

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
  // Per element: the number of vector instructions, each counted as a multiply-add because it takes the issue slot of
  // one, and the number of values read and written.
  void report(benchmark::State& state, double instructions, double values) const {
    const auto elements = static_cast<double>(rows * columns);
    report_work(state, {.operations = 2 * instructions * elements, .bytes = 4 * values * elements});
  }
};

void layer_norm(benchmark::State& state) {
  Rows r(state);
  for (auto _ : state) {
    kernels::layer_norm(r.x.data(), r.columns, r.y.data(), r.y.data(), 1e-6f, r.norm.data(), r.columns, r.rows,
                        r.columns);
  }
  r.report(state, 6, 2);
}

void residual_layer_norm(benchmark::State& state) {
  Rows r(state);
  for (auto _ : state) {
    kernels::residual_layer_norm(r.x.data(), r.y.data(), nullptr, r.y.data(), r.y.data(), 1e-6f, r.out.data(),
                                 r.norm.data(), r.rows, r.columns);
  }
  r.report(state, 8, 4);
}

void softmax(benchmark::State& state) {
  Rows r(state);
  for (auto _ : state) kernels::softmax(r.x.data(), r.y.data(), r.rows, r.columns);
  r.report(state, 23, 2);
}

void activation(benchmark::State& state, kernels::Activation kind, double instructions) {
  Rows r(state);
  for (auto _ : state) kernels::activate(kind, r.x.data(), r.y.data(), r.rows * r.columns);
  r.report(state, instructions, 2);
}

using kernels::Activation;
BENCHMARK(layer_norm)->Args({197, 192})->Args({197, 768});
BENCHMARK(residual_layer_norm)->Args({197, 192})->Args({197, 768});
BENCHMARK(softmax)->Args({591, 197});
BENCHMARK_CAPTURE(activation, gelu, Activation::gelu, 30)->Args({197, 768});
BENCHMARK_CAPTURE(activation, gelu_tanh, Activation::gelu_tanh, 26)->Args({197, 768});
BENCHMARK_CAPTURE(activation, quick_gelu, Activation::quick_gelu, 23)->Args({197, 768});
BENCHMARK_CAPTURE(activation, silu, Activation::silu, 23)->Args({197, 768});

}  // namespace
}  // namespace vitrail::benchmarks
