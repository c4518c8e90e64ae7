// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/symmetric_eigen_internal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

// to += factor · from.  Every inner loop of this file runs along a row, so that the compiler can vectorise it without
// reordering a sum.
void add_row(double* to, double factor, const double* from, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) to[i] += factor * from[i];
}

// A = Q T Qᵀ with T tridiagonal.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> off_diagonal;  // off_diagonal[i] is the element (i, i + 1)
  std::vector<double> q_transposed;  // [n, n]
};

// A Householder reflection I − β v vᵀ that zeroes the elements of row k after column k + 1.
struct Reflection {
  std::vector<double> v;  // [n], zero up to k
  double beta = 0;
  double reflected = 0;  // the new element (k, k + 1)
};

Reflection reflection_of(const double* row, int64_t k, int64_t n) {
  Reflection result{std::vector<double>(static_cast<size_t>(n)), 0, row[k + 1]};
  double scale = 0;  // the largest magnitude: dividing by it avoids overflow and underflow of the squares
  for (int64_t i = k + 2; i < n; ++i) scale = std::max(scale, std::abs(row[i]));
  if (scale == 0) return result;  // the row is tridiagonal already
  scale = std::max(scale, std::abs(row[k + 1]));
  double squares = 0;
  for (int64_t i = k + 1; i < n; ++i) {
    result.v[i] = row[i] / scale;
    squares += result.v[i] * result.v[i];
  }
  const double length = std::sqrt(squares), first = result.v[k + 1];
  result.reflected = first > 0 ? -length : length;  // this sign avoids cancellation in the next line
  result.v[k + 1] = first - result.reflected;
  result.beta = 1 / (squares - first * result.reflected);
  result.reflected *= scale;
  return result;
}

// A ← H A H in the trailing submatrix after row and column k.
void reflect_both_sides(std::vector<double>& a, const Reflection& h, int64_t k, int64_t n) {
  std::vector<double> w(static_cast<size_t>(n));
  for (int64_t i = k + 1; i < n; ++i) add_row(w.data(), h.beta * h.v[i], a.data() + i * n, k + 1, n);
  double dot = 0;
  for (int64_t i = k + 1; i < n; ++i) dot += w[i] * h.v[i];
  add_row(w.data(), -h.beta / 2 * dot, h.v.data(), k + 1, n);
  for (int64_t i = k + 1; i < n; ++i) {
    add_row(a.data() + i * n, -h.v[i], w.data(), k + 1, n);
    add_row(a.data() + i * n, -w[i], h.v.data(), k + 1, n);
  }
}

Tridiagonal tridiagonal(std::vector<double> a, int64_t n) {
  Tridiagonal t;
  std::vector<Reflection> reflections;
  for (int64_t k = 0; k + 2 < n; ++k) {
    reflections.push_back(reflection_of(a.data() + k * n, k, n));
    reflect_both_sides(a, reflections.back(), k, n);
    t.off_diagonal.push_back(reflections.back().reflected);
  }
  if (n > 1) t.off_diagonal.push_back(a[(n - 2) * n + n - 1]);
  for (int64_t i = 0; i < n; ++i) t.diagonal.push_back(a[i * n + i]);

  std::vector<double> q(static_cast<size_t>(n * n));  // H₀ H₁ …, multiplied from the last one on
  for (int64_t i = 0; i < n; ++i) q[i * n + i] = 1;
  for (int64_t k = n - 3; k >= 0; --k) {
    const Reflection& h = reflections[static_cast<size_t>(k)];
    std::vector<double> vq(static_cast<size_t>(n));  // β vᵀ Q
    for (int64_t i = k + 1; i < n; ++i) add_row(vq.data(), h.beta * h.v[i], q.data() + i * n, k + 1, n);
    for (int64_t i = k + 1; i < n; ++i) add_row(q.data() + i * n, -h.v[i], vq.data(), k + 1, n);
  }
  t.q_transposed.resize(q.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) t.q_transposed[j * n + i] = q[i * n + j];
  }
  return t;
}

// One implicit QL step on rows first … last.  The eigenvectors follow by Givens rotations of adjacent rows.
void ql_step(Tridiagonal& t, int64_t first, int64_t last, int64_t n) {
  std::vector<double>&d = t.diagonal, &e = t.off_diagonal;
  const double ratio = (d[first + 1] - d[first]) / (2 * e[first]);
  // Wilkinson shift: the eigenvalue of the leading 2×2 block that is closer to its first diagonal element.
  double g = d[last] - d[first] + e[first] / (ratio + std::copysign(std::hypot(ratio, 1.0), ratio));
  double sine = 1, cosine = 1, correction = 0;
  for (int64_t i = last - 1; i >= first; --i) {
    const double f = sine * e[i], b = cosine * e[i], r = std::hypot(f, g);
    if (i + 1 < last) e[i + 1] = r;
    if (r == 0) {  // the matrix splits into two blocks here
      d[i + 1] -= correction;
      if (last < n - 1) e[last] = 0;
      return;
    }
    sine = f / r, cosine = g / r;
    g = d[i + 1] - correction;
    const double rotated = (d[i] - g) * sine + 2 * cosine * b;
    correction = sine * rotated;
    d[i + 1] = g + correction;
    g = cosine * rotated - b;
    double *const upper = t.q_transposed.data() + i * n, *const lower = upper + n;
    for (int64_t k = 0; k < n; ++k) {
      const double x = upper[k], y = lower[k];
      lower[k] = sine * x + cosine * y;
      upper[k] = cosine * x - sine * y;
    }
  }
  d[first] -= correction;
  e[first] = g;
}

void diagonalize(Tridiagonal& t, int64_t n) {
  constexpr int kMaxSteps = 60;  // an eigenvalue usually takes two or three
  const std::vector<double>&d = t.diagonal, &e = t.off_diagonal;
  double largest = 0;  // rounding errors are relative to it: eigenvalues of 0 have no smaller ones
  for (const double value : d) largest = std::max(largest, std::abs(value));
  for (const double value : e) largest = std::max(largest, std::abs(value));
  const double negligible = std::numeric_limits<double>::epsilon() * largest;
  for (int64_t first = 0; first < n; ++first) {
    for (int steps = 0;; ++steps) {
      int64_t last = first;  // the block from `first` ends at the next negligible off-diagonal element
      while (last + 1 < n && std::abs(e[last]) > negligible) ++last;
      if (last == first) break;
      if (steps == kMaxSteps) throw Error("eigenvalues", "convergence", str("none after ", steps, " QL steps"));
      ql_step(t, first, last, n);
    }
  }
}

}  // namespace

SymmetricEigen symmetric_eigen(std::vector<double> matrix, int64_t n) {
  for (const double value : matrix) {
    if (!std::isfinite(value)) throw Error("eigenvalues", "finite values", str(value));
  }
  Tridiagonal t = tridiagonal(std::move(matrix), n);
  diagonalize(t, n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.diagonal[a] > t.diagonal[b]; });
  SymmetricEigen result;
  for (const int64_t i : order) {
    result.values.push_back(t.diagonal[i]);
    const double* const row = t.q_transposed.data() + i * n;
    result.vectors.insert(result.vectors.end(), row, row + n);
  }
  return result;
}

}  // namespace vitrail
