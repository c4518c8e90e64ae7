// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/patch_resampling.h"

#include <cmath>
#include <utility>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/nn/positional_encoding.h"

namespace vitrail::nn {
namespace {

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * cols + c)]; }
};

Matrix matrix(int64_t rows, int64_t cols) {
  return {rows, cols, std::vector<double>(static_cast<size_t>(rows * cols))};
}

Matrix transposed(const Matrix& a) {
  Matrix result = matrix(a.cols, a.rows);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < a.cols; ++c) result.at(c, r) = a.at(r, c);
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result = matrix(a.rows, b.cols);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t k = 0; k < a.cols; ++k) {
      for (int64_t c = 0; c < b.cols; ++c) result.at(r, c) += a.at(r, k) * b.at(k, c);
    }
  }
  return result;
}

// a⁻¹ b by Gauss–Jordan elimination with row pivoting; a is square and has full rank.
Matrix solve(Matrix a, Matrix b) {
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < a.rows; ++r) {
      if (std::abs(a.at(r, k)) > std::abs(a.at(pivot, k))) pivot = r;
    }
    for (int64_t c = 0; c < a.cols; ++c) std::swap(a.at(k, c), a.at(pivot, c));
    for (int64_t c = 0; c < b.cols; ++c) std::swap(b.at(k, c), b.at(pivot, c));
    for (int64_t r = 0; r < a.rows; ++r) {
      if (r == k) continue;
      const double factor = a.at(r, k) / a.at(k, k);
      for (int64_t c = k; c < a.cols; ++c) a.at(r, c) -= factor * a.at(k, c);
      for (int64_t c = 0; c < b.cols; ++c) b.at(r, c) -= factor * b.at(k, c);
    }
  }
  for (int64_t r = 0; r < b.rows; ++r) {
    for (int64_t c = 0; c < b.cols; ++c) b.at(r, c) /= a.at(r, r);
  }
  return b;
}

// The matrix [to, from] that resizes a line of pixels.  Its columns are the resized unit vectors.
Matrix resize_matrix(int64_t from, int64_t to) {
  std::vector<double> identity(static_cast<size_t>(from * from));
  for (int64_t i = 0; i < from; ++i) identity[static_cast<size_t>(i * from + i)] = 1;
  const Tensor lines = Tensor::from<double>({1, from, from}, identity);
  const Tensor resized =
      resample_positions(lines, 0, {from, 1}, {to, 1}, {.antialias = true, .offset = 0}).contiguous();
  return {to, from, std::vector<double>(resized.data<double>(), resized.data<double>() + to * from)};
}

// pinv(Bᵀ) [to, from] for the resize matrix B [to, from].  B has full rank; Bᵀ is tall if the line shrinks.
Matrix pseudo_inverse_resize(int64_t from, int64_t to) {
  const Matrix b = resize_matrix(from, to), bt = transposed(b);
  if (to <= from) return solve(product(b, bt), b);  // (AᵀA)⁻¹ Aᵀ with A = Bᵀ
  return transposed(solve(product(bt, b), bt));     // Aᵀ (A Aᵀ)⁻¹
}

}  // namespace

// Resizing is separable in y and x, so B is a Kronecker product, and so is its pseudo-inverse.
Tensor resample_patch_weight(const Tensor& weight, std::array<int64_t, 2> to) {
  if (weight.rank() != 4) throw Error("patch embedding", "a weight [D, C, h, w]", weight.shape().to_string());
  if (to[0] < 1 || to[1] < 1) throw Error("patch embedding", "patches of at least 1×1", str(to[0], "×", to[1]));
  const int64_t height = weight.size(2), width = weight.size(3), planes = weight.size(0) * weight.size(1);
  if (height == to[0] && width == to[1]) return weight;
  const Matrix down = pseudo_inverse_resize(height, to[0]), across = transposed(pseudo_inverse_resize(width, to[1]));
  const Tensor source = weight.to(DType::f64).contiguous();
  const Tensor result = Tensor::empty({weight.size(0), weight.size(1), to[0], to[1]}, DType::f64);
  for (int64_t p = 0; p < planes; ++p) {
    const double* from = source.data<double>() + p * height * width;
    const Matrix resized = product(product(down, {height, width, {from, from + height * width}}), across);
    std::copy(resized.values.begin(), resized.values.end(), result.data<double>() + p * to[0] * to[1]);
  }
  return result.to(weight.dtype());
}

}  // namespace vitrail::nn
