// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/sigreg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/kernels/rowwise/characteristic_sums.h"
#include "vitrail/kernels/rowwise/scalar_characteristic_sums_internal.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

using kernels::kHarmonics;

// The points t_k = 3k / 16 of the integral.  At t_0 = 0 all characteristic functions are 1, so that it adds nothing.
constexpr double kSpacing = 3.0 / kHarmonics;

// For k = 1 … 16: φ_k = e^{−t_k²/2}, and the weight of the integral times φ_k.
struct Quadrature {
  std::array<double, kHarmonics> phi{}, weight{};

  Quadrature() {
    for (size_t k = 0; k < kHarmonics; ++k) {
      const double t = kSpacing * static_cast<double>(k + 1);
      phi[k] = std::exp(-t * t / 2);
      weight[k] = (k + 1 < kHarmonics ? 2 : 1) * kSpacing * phi[k];
    }
  }
};

void characteristic_sums_of(const View<const float>& u, float* sums) {
  const Shape& shape = u.tensor->shape();
  kernels::characteristic_sums(u.data, shape[0], shape[1], shape[2], static_cast<float>(kSpacing), sums);
}
void characteristic_sums_of(const View<const double>& u, double* sums) {
  const Shape& shape = u.tensor->shape();
  const int64_t rows = shape[1], cols = shape[2];
  std::fill_n(sums, shape[0] * 2 * kHarmonics * cols, 0.0);
  for (int64_t v = 0; v < shape[0]; ++v) {
    kernels::scalar::characteristic_sums(u.data + v * rows * cols, cols, rows, cols, kSpacing,
                                         sums + v * 2 * kHarmonics * cols, cols);
  }
}

void characteristic_gradient_of(const View<const float>& u, const float* grad_sums, float* grad_u) {
  const Shape& shape = u.tensor->shape();
  kernels::characteristic_sums_backward(u.data, shape[0], shape[1], shape[2], static_cast<float>(kSpacing), grad_sums,
                                        grad_u);
}
void characteristic_gradient_of(const View<const double>& u, const double* grad_sums, double* grad_u) {
  const Shape& shape = u.tensor->shape();
  const int64_t rows = shape[1], cols = shape[2];
  for (int64_t v = 0; v < shape[0]; ++v) {
    const int64_t at = v * rows * cols;
    kernels::scalar::characteristic_sums_backward(u.data + at, cols, rows, cols, kSpacing,
                                                  grad_sums + v * 2 * kHarmonics * cols, cols, grad_u + at);
  }
}

// The loss of u [V, B, S].  sums [V, 16, 2, S] become the sums over B of cos(t_k u) and sin(t_k u).
template <class T>
void sigreg_forward(const View<const T>& u, T* loss, T* sums) {
  characteristic_sums_of(u, sums);
  const Quadrature at;
  const Shape& shape = u.tensor->shape();
  const int64_t cols = shape[2];
  const double rows = static_cast<double>(shape[1]);
  double total = 0;
  for (int64_t i = 0; i < shape[0] * kHarmonics; ++i) {
    const size_t k = static_cast<size_t>(i % kHarmonics);
    const T *const cosines = sums + 2 * i * cols, *const sines = cosines + cols;
    for (int64_t s = 0; s < cols; ++s) {
      const double real = static_cast<double>(cosines[s]) / rows - at.phi[k];
      const double imaginary = static_cast<double>(sines[s]) / rows;
      total += at.weight[k] * (real * real + imaginary * imaginary);
    }
  }
  *loss = static_cast<T>(rows * total / static_cast<double>(shape[0] * cols));
}

template <class T>
void sigreg_backward(T grad, const View<const T>& u, const View<const T>& sums, T* grad_u) {
  const Quadrature at;
  const Shape& shape = u.tensor->shape();
  const int64_t cols = shape[2];
  const double rows = static_cast<double>(shape[1]);
  const double factor = 2 * static_cast<double>(grad) / static_cast<double>(shape[0] * cols);
  std::vector<T> grad_sums(sums.data, sums.data + sums.tensor->numel());
  for (int64_t i = 0; i < shape[0] * kHarmonics; ++i) {
    const size_t k = static_cast<size_t>(i % kHarmonics);
    T *const cosines = grad_sums.data() + 2 * i * cols, *const sines = cosines + cols;
    const double weight = factor * at.weight[k];
    for (int64_t s = 0; s < cols; ++s) {
      cosines[s] = static_cast<T>(weight * (static_cast<double>(cosines[s]) / rows - at.phi[k]));
      sines[s] = static_cast<T>(weight * static_cast<double>(sines[s]) / rows);
    }
  }
  characteristic_gradient_of(u, grad_sums.data(), grad_u);
}

// The mean of the tests of the columns of u [V, B, S].
Tensor epps_pulley(const Tensor& u) {
  return apply({.name = "sigreg",
                .shape = {},
                .further_results = {{{u.size(0), kHarmonics, 2, u.size(2)}}},
                .kernel = [](auto in, auto out) { sigreg_forward(in[0], out[0].data, out[1].data); },
                .gradient =
                    [](const auto& in, const auto& out) {
                      return backward_kernel(in, {in[0], out[1]}, [](auto from, auto grads) {
                        sigreg_backward(from[0].data[0], from[1], from[2], grads[0].data);
                      });
                    },
                .profile = "SIGReg"},
               {u});
}

}  // namespace

Tensor sigreg(const Tensor& z, const Tensor& directions) {
  const bool fits = z.rank() == 3 && directions.rank() == 2 && directions.size(0) == z.size(2) && z.numel() > 0 &&
                    directions.size(1) > 0;
  if (!fits) {
    throw Error("sigreg", "z [V, B, K] and directions [K, S] with elements",
                str(z.shape(), " and ", directions.shape()));
  }
  return epps_pulley(matmul(contiguous(z).flatten(0, 1), directions).view({z.size(0), z.size(1), directions.size(1)}));
}

}  // namespace vitrail::ops
