// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/visreg.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/ops/operation.h"
#include "vitrail/ops/sort.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

constexpr double kMinDeviation = 1e-6;  // keeps the division by σ finite

// Calls body(first element of the view, first element of its columns' values) for the views of x [V, B, K], in
// parallel.
void for_views(const Shape& shape, const std::function<void(int64_t at, int64_t column)>& body) {
  parallel_for(0, shape[0], 1, [&](int64_t first, int64_t last) {
    for (int64_t v = first; v < last; ++v) body(v * shape[1] * shape[2], v * shape[2]);
  });
}

// x − mean over the rows of each view.  It is a projection, and so its own gradient.
template <class T>
void center(const T* x, const Shape& shape, T* result) {
  const int64_t rows = shape[1], cols = shape[2];
  for_views(shape, [&](int64_t at, int64_t) {
    std::vector<double> means(static_cast<size_t>(cols));
    for (int64_t i = 0; i < rows * cols; ++i) means[i % cols] += static_cast<double>(x[at + i]);
    for (double& mean : means) mean /= static_cast<double>(rows);
    for (int64_t i = 0; i < rows * cols; ++i) result[at + i] = x[at + i] - static_cast<T>(means[i % cols]);
  });
}

Tensor centered_columns(const Tensor& x) {
  const Shape shape = x.shape();
  const auto kernel = [shape](auto in, auto out) { center(in[0].data, shape, out[0].data); };
  return apply({.name = "centered_columns",
                .shape = shape,
                .kernel = kernel,
                .gradient = [kernel](const auto& in, const auto&) { return backward_kernel(in, {}, kernel); },
                .plain_loop = true},
               {x});
}

// ‖d‖ / √B of the columns of d [V, B, K] → [V, K].
template <class T>
void deviations(const T* d, const Shape& shape, T* result) {
  const int64_t rows = shape[1], cols = shape[2];
  for_views(shape, [&](int64_t at, int64_t column) {
    std::vector<double> squares(static_cast<size_t>(cols));
    for (int64_t i = 0; i < rows * cols; ++i) {
      squares[i % cols] += static_cast<double>(d[at + i]) * static_cast<double>(d[at + i]);
    }
    for (int64_t c = 0; c < cols; ++c) {
      result[column + c] = static_cast<T>(std::sqrt(squares[c] / static_cast<double>(rows)));
    }
  });
}

// The derivative of ‖d‖ / √B is d / (B · ‖d‖ / √B); that of a zero column is 0.
template <class T>
void deviations_backward(const T* grad, const T* d, const T* deviation, const Shape& shape, T* grad_d) {
  const int64_t rows = shape[1], cols = shape[2];
  for_views(shape, [&](int64_t at, int64_t column) {
    std::vector<T> factors(static_cast<size_t>(cols));
    for (int64_t c = 0; c < cols; ++c) {
      const T divisor = static_cast<T>(rows) * deviation[column + c];
      if (divisor > T(0)) factors[c] = grad[column + c] / divisor;
    }
    for (int64_t i = 0; i < rows * cols; ++i) grad_d[at + i] = factors[i % cols] * d[at + i];
  });
}

Tensor column_deviations(const Tensor& centered) {
  const Shape shape = centered.shape();
  return apply({.name = "column_deviations",
                .shape = {shape[0], shape[2]},
                .kernel = [shape](auto in, auto out) { deviations(in[0].data, shape, out[0].data); },
                .gradient =
                    [shape](const auto& in, const auto& out) {
                      return backward_kernel(in, {in[0], out[0]}, [shape](auto from, auto grads) {
                        deviations_backward(from[0].data, from[1].data, from[2].data, shape, grads[0].data);
                      });
                    },
                .plain_loop = true},
               {centered});
}

// The x > 0 at which N(0, 1) exceeds x with this probability, below 1/2.  The distribution function is concave there,
// so that Newton's method from 0 rises to x.
double upper_quantile(double probability) {
  double x = 0;
  for (int i = 0; i < 64; ++i) {
    const double excess = std::erfc(x / std::sqrt(2.0)) / 2 - probability;
    const double step = excess * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x += step;
    if (std::abs(step) < 1e-15 * (1 + x)) break;
  }
  return x;
}

// q_1 … q_B: [B, 1].
Tensor normal_quantiles(int64_t count) {
  const Tensor result = Tensor::zeros({count, 1}, DType::f64);
  double* const q = result.data<double>();
  for (int64_t b = 0; b < count / 2; ++b) {
    q[count - 1 - b] = upper_quantile(static_cast<double>(b + 1) / static_cast<double>(count + 1));
    q[b] = -q[count - 1 - b];
  }
  return result;
}

// 1 / (deviations + kMinDeviation), without a gradient.
Tensor inverses_of(const Tensor& deviations) {
  const Tensor result = deviations.detach().to(DType::f64).clone();
  for (int64_t i = 0; i < result.numel(); ++i) {
    double& value = result.data<double>()[i];
    value = 1 / (value + kMinDeviation);
  }
  return result.to(deviations.dtype());
}

}  // namespace

VisregTerms visreg(const Tensor& z, const Tensor& directions) {
  const bool fits = z.rank() == 3 && directions.rank() == 2 && directions.size(0) == z.size(2) && z.numel() > 0 &&
                    directions.size(1) > 0;
  if (!fits) {
    throw Error("visreg", "z [V, B, K] and directions [K, S] with elements",
                str(z.shape(), " and ", directions.shape()));
  }
  const int64_t views = z.size(0), rows = z.size(1), count = directions.size(1);
  const auto constant = [&](const Shape& shape, double value) { return Tensor::full(shape, value, z.dtype()); };
  const Tensor mean = ops::mean(z, 1);                                                  // [V, K]
  const Tensor centered = centered_columns(z);                                          // [V, B, K]
  const Tensor deviation = column_deviations(centered);                                 // [V, K]
  const Tensor normalized = mul(centered, inverses_of(deviation).unsqueeze(1));         // [V, B, K]
  const Tensor projected = matmul(normalized.flatten(0, 1), directions.to(z.dtype()));  // [V · B, S]
  const Tensor sorted = sort_columns(projected.view({views, rows, count}));             // [V, B, S]
  const Tensor quantiles = normal_quantiles(rows).to(z.dtype()).expand({views, rows, count});
  return {.center = mean_squared_error(mean, constant(mean.shape(), 0)),
          .scale = mean_squared_error(deviation, constant(deviation.shape(), 1 - kMinDeviation)),
          .shape = mean_squared_error(sorted, quantiles)};
}

}  // namespace vitrail::ops
