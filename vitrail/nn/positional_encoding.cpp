// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/positional_encoding.h"

#include <cmath>
#include <vector>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

// Cubic convolution (Keys 1981) with parameter a: torch uses −0.75, and with antialiasing −0.5, as Pillow.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double triangle(double x) { return std::max(1 - std::abs(x), 0.0); }

// The filter of one target position: weights of the source positions first, first + 1, ...
struct Taps {
  int64_t first;
  std::vector<double> weights;
};

// scale: source extent per target extent.
Taps taps_of(int64_t target, int64_t source_length, double scale, const PositionResampling& how) {
  const bool antialias = how.antialias;
  const int64_t radius = how.bilinear ? 1 : 2;
  const double stretch = antialias && scale > 1 ? scale : 1.0, support = static_cast<double>(radius) * stretch;
  const auto filter = [&](double x) { return how.bilinear ? triangle(x) : cubic(x, antialias ? -0.5 : -0.75); };
  const double shift = how.align_corners ? 0.0 : 0.5;  // from the corner of a position to its centre
  const double centre = scale * (static_cast<double>(target) + shift) - (antialias ? 0.0 : shift);
  Taps taps;
  if (antialias) {  // the part of the window inside the source, normalised
    const int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t end = std::min<int64_t>(source_length, static_cast<int64_t>(centre + support + 0.5));
    taps.first = begin;
    double total = 0;
    for (int64_t i = begin; i < end; ++i) {
      taps.weights.push_back(filter((static_cast<double>(i) - centre + 0.5) / stretch));
      total += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= total;
    return taps;
  }
  const int64_t base = static_cast<int64_t>(std::floor(centre));  // taps outside use the edge position
  const int64_t low = std::clamp<int64_t>(base - radius + 1, 0, source_length - 1);
  const int64_t high = std::clamp<int64_t>(base + radius, 0, source_length - 1);
  taps.first = low;
  taps.weights.assign(static_cast<size_t>(high - low + 1), 0.0);
  for (int64_t i = base - radius + 1; i <= base + radius; ++i) {
    const int64_t at = std::clamp<int64_t>(i, 0, source_length - 1);
    taps.weights[static_cast<size_t>(at - low)] += filter(static_cast<double>(i) - centre);
  }
  return taps;
}

// Resamples one axis: [outer, length, inner] → [outer, target, inner].  With `transposed`, applies the transposed
// matrix to [outer, target, inner], as the gradient needs.
std::vector<double> resample_axis(const std::vector<double>& x, int64_t outer, int64_t length, int64_t inner,
                                  int64_t target, double scale, const PositionResampling& how, bool transposed) {
  if (how.antialias && target == length) return x;  // torch does not resample such an axis, whatever the offset
  std::vector<double> result(static_cast<size_t>(outer * (transposed ? length : target) * inner), 0.0);
  for (int64_t t = 0; t < target; ++t) {
    const Taps taps = taps_of(t, length, scale, how);
    for (int64_t o = 0; o < outer; ++o) {
      for (size_t w = 0; w < taps.weights.size(); ++w) {
        const int64_t source = (o * length + taps.first + static_cast<int64_t>(w)) * inner,
                      at = (o * target + t) * inner;
        const double* const from = x.data() + (transposed ? at : source);
        double* const to = result.data() + (transposed ? source : at);
        for (int64_t i = 0; i < inner; ++i) to[i] += taps.weights[w] * from[i];
      }
    }
  }
  return result;
}

double scale_of(int64_t from, int64_t to, const PositionResampling& how) {
  if (how.align_corners) return to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
  return static_cast<double>(from) / (static_cast<double>(to) + how.offset);
}

// Resamples a grid [1, from, D] → [1, to, D], columns first as torch.  With `transposed`: the gradient [1, to, D] →
// [1, from, D].
Tensor resample_grid(const Tensor& grid, std::array<int64_t, 2> from, std::array<int64_t, 2> to,
                     const PositionResampling& how, bool transposed) {
  const int64_t dim = grid.size(2);
  const Tensor exact = grid.detach().to(DType::f64).contiguous();
  std::vector<double> values(exact.data<double>(), exact.data<double>() + exact.numel());
  auto columns = [&] {
    const double scale = scale_of(from[1], to[1], how);
    values = resample_axis(values, from[0], from[1], dim, to[1], scale, how, transposed);
  };
  auto rows = [&] {
    const double scale = scale_of(from[0], to[0], how);
    values = resample_axis(values, 1, from[0], to[1] * dim, to[0], scale, how, transposed);
  };
  transposed ? rows() : columns();
  transposed ? columns() : rows();
  const std::array<int64_t, 2> result = transposed ? from : to;
  return Tensor::from<double>({1, result[0] * result[1], dim}, values).to(grid.dtype());
}

}  // namespace

Tensor sinusoidal_positions(int64_t length, int64_t dim) {
  if (dim % 2 != 0) throw Error("sinusoidal positions", "an even width", str(dim));
  Tensor table = Tensor::empty({1, length, dim});
  float* data = table.data<float>();
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < dim; j += 2) {
      const double angle =
          static_cast<double>(i) / std::pow(10000.0, static_cast<double>(j) / static_cast<double>(dim));
      data[i * dim + j] = static_cast<float>(std::sin(angle));
      data[i * dim + j + 1] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

Tensor sincos_positions_2d(std::array<int64_t, 2> grid, int64_t dim) {
  if (dim % 4 != 0) throw Error("sincos2d positions", "a width that 4 divides", str(dim));
  const int64_t quarter = dim / 4;
  Tensor table = Tensor::empty({1, grid[0] * grid[1], dim});
  float* row = table.data<float>();
  for (int64_t y = 0; y < grid[0]; ++y) {
    for (int64_t x = 0; x < grid[1]; ++x, row += dim) {
      for (int64_t i = 0; i < quarter; ++i) {
        const double omega = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(quarter));
        const double across = static_cast<double>(x) * omega, down = static_cast<double>(y) * omega;
        row[i] = static_cast<float>(std::sin(across));
        row[quarter + i] = static_cast<float>(std::cos(across));
        row[2 * quarter + i] = static_cast<float>(std::sin(down));
        row[3 * quarter + i] = static_cast<float>(std::cos(down));
      }
    }
  }
  return table;
}

PositionalEncoding::PositionalEncoding(int64_t dim, double dropout, int64_t max_len, std::string path)
    : Module(std::move(path)),
      table_(sinusoidal_positions(max_len, dim)),
      dropout_(dropout, this->path().empty() ? "dropout" : this->path() + ".dropout") {}

Tensor PositionalEncoding::forward(const Tensor& x) const {
  if (x.rank() != 3 || x.size(2) != table_.size(2) || x.size(1) > table_.size(1)) {
    throw Error("PositionalEncoding", str("x [B, at most ", table_.size(1), ", ", table_.size(2), "]"),
                x.shape().to_string());
  }
  const Tensor positions = table_.narrow(1, 0, x.size(1)).to(x.dtype());
  trace(*this, "positions", positions);
  return traced(*this, dropout_.forward(ops::add(x, positions)));
}

Tensor resample_positions(const Tensor& positions, int64_t prefix, std::array<int64_t, 2> from,
                          std::array<int64_t, 2> to, const PositionResampling& how) {
  if (positions.rank() != 3 || positions.size(1) != prefix + from[0] * from[1]) {
    throw Error("positions", str("[1, ", prefix, " + ", from[0], "×", from[1], ", D]"), positions.shape().to_string());
  }
  if (to[0] < 1 || to[1] < 1) throw Error("positions", "a grid of at least 1×1", str(to[0], "×", to[1]));
  if (how.align_corners && (how.antialias || how.offset != 0)) {
    throw Error("positions", "align_corners without antialias and offset", how.antialias ? "antialias" : "an offset");
  }
  if (from == to) return positions;
  const Tensor grid = positions.narrow(1, prefix, from[0] * from[1]);
  Tensor resampled = resample_grid(grid, from, to, how, false);
  if (autograd::recording({grid})) {
    autograd::record(resampled, "resample_positions", {grid},
                     [=](const Tensor& grad) { return std::vector<Tensor>{resample_grid(grad, from, to, how, true)}; });
  }
  return ops::cat({positions.narrow(1, 0, prefix), resampled}, 1);
}

}  // namespace vitrail::nn
