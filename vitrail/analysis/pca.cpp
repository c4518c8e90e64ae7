// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/pca.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/base/symmetric_eigen_internal.h"
#include "vitrail/ops/linear.h"

namespace vitrail::analysis {
namespace {

using Matrix = std::vector<double>;  // row-major

Matrix mean_of(const Tensor& rows) {
  const int64_t n = rows.size(0), dim = rows.size(1);
  Matrix mean(static_cast<size_t>(dim), 0.0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < dim; ++j) mean[j] += rows.data<float>()[i * dim + j];
  }
  for (double& value : mean) value /= static_cast<double>(n);
  return mean;
}

Tensor centred(const Tensor& rows, const Matrix& mean) {
  const int64_t dim = rows.size(-1);
  const Tensor result = Tensor::empty(rows.shape());
  for (int64_t i = 0; i < rows.numel(); ++i) {
    result.data<float>()[i] = static_cast<float>(rows.data<float>()[i] - mean[i % dim]);
  }
  return result;
}

// xᵀx / (n − 1) [D, D].  Products of chunks of rows are added in double.
Matrix covariance(const Tensor& x) {
  constexpr int64_t kChunk = 1024;
  const int64_t n = x.size(0), dim = x.size(1);
  Matrix sum(static_cast<size_t>(dim * dim), 0.0);
  for (int64_t first = 0; first < n; first += kChunk) {
    const Tensor chunk = x.narrow(0, first, std::min(kChunk, n - first));
    const Tensor product = ops::matmul(chunk.transpose(0, 1), chunk);
    for (int64_t i = 0; i < dim * dim; ++i) sum[i] += product.data<float>()[i];
  }
  for (double& value : sum) value /= static_cast<double>(n - 1);
  return sum;
}

double dot_product(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Makes the rows of v [k, n] orthonormal (modified Gram–Schmidt, twice for the orthogonality of nearly parallel rows).
// A row that depends on those before it becomes zero.
void orthonormalise(Matrix& v, int64_t k, int64_t n) {
  for (int64_t i = 0; i < k; ++i) {
    double* row = v.data() + i * n;
    const double before = std::sqrt(dot_product(row, row, n));
    for (int64_t pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* other = v.data() + j * n;
        const double overlap = dot_product(row, other, n);
        for (int64_t e = 0; e < n; ++e) row[e] -= overlap * other[e];
      }
    }
    const double norm = std::sqrt(dot_product(row, row, n));
    const double factor = norm > 1e-12 * before ? 1 / norm : 0;
    for (int64_t e = 0; e < n; ++e) row[e] *= factor;
  }
}

// The largest eigenvalues of a symmetric positive semidefinite matrix [n, n], with their vectors in rows.
// Subspace iteration with Rayleigh–Ritz projections (Golub & Van Loan, Matrix Computations, section 8.2.4).
struct Subspace {
  int64_t n, k;
  Matrix vectors, values;  // [k, n], [k]

  Subspace(int64_t size, int64_t rank) : n(size), k(rank), vectors(static_cast<size_t>(k * n)), values(k) {
    RandomStream random(random_key("pca"));
    for (double& value : vectors) value = random.normal();
    orthonormalise(vectors, k, n);
  }

  Matrix times(const Matrix& matrix) const {
    Matrix product(vectors.size());
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        product[i * n + j] = dot_product(vectors.data() + i * n, matrix.data() + j * n, n);  // the matrix is symmetric
      }
    }
    return product;
  }

  // Rotates the basis to the eigenvectors within its span.  Returns matrix · basis, rotated likewise.
  Matrix project(const Matrix& product) {
    Matrix small(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        small[i * k + j] = small[j * k + i] = dot_product(vectors.data() + i * n, product.data() + j * n, n);
      }
    }
    const SymmetricEigen eigen = symmetric_eigen(small, k);
    values = eigen.values;
    const auto rotated = [&](const Matrix& rows) {
      Matrix result(rows.size(), 0.0);
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          for (int64_t e = 0; e < n; ++e) result[i * n + e] += eigen.vectors[i * k + j] * rows[j * n + e];
        }
      }
      return result;
    };
    vectors = rotated(vectors);
    return rotated(product);
  }
};

Subspace leading_eigenvectors(const Matrix& matrix, int64_t n, int64_t count) {
  constexpr int64_t kExtra = 13, kMaxIterations = 2000;
  constexpr double kTolerance = 1e-10;  // |A·v − λ·v| / λ₁
  Subspace space(n, std::min(n, count + kExtra));
  for (int64_t iteration = 0; iteration < kMaxIterations; ++iteration) {
    Matrix product = space.project(space.times(matrix));
    double error = 0;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t e = 0; e < n; ++e) {
        error = std::max(error, std::abs(product[i * n + e] - space.values[i] * space.vectors[i * n + e]));
      }
    }
    if (error <= kTolerance * space.values[0]) break;
    space.vectors = std::move(product);
    orthonormalise(space.vectors, space.k, n);
  }
  return space;
}

void fix_sign(float* component, int64_t dim) {
  const float* largest =
      std::max_element(component, component + dim, [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (*largest >= 0) return;
  for (int64_t i = 0; i < dim; ++i) component[i] = -component[i];
}

void check_rows(const Tensor& rows, int64_t count) {
  if (rows.rank() != 2) throw Error("pca", "rows [n, D]", rows.shape().to_string());
  const int64_t limit = std::min(rows.size(0) - 1, rows.size(1));
  if (count < 1 || count > limit) {
    throw Error("pca", str("1 to ", std::max<int64_t>(limit, 0), " components of ", rows.shape(), " features"),
                str(count));
  }
  for (int64_t i = 0; i < rows.numel(); ++i) {
    if (!std::isfinite(rows.data<float>()[i])) throw Error("pca", "finite features", str(rows.data<float>()[i]));
  }
}

// The patches of all images as rows [n, D].
Tensor all_rows(const std::vector<Tensor>& features) {
  if (features.empty()) throw Error("pca", "the features of at least one image", "none");
  const int64_t dim = features[0].size(-1);
  int64_t count = 0;
  for (const Tensor& image : features) {
    if (image.rank() != 3 || image.size(2) != dim) {
      throw Error("pca", str("features [rows, columns, ", dim, "] of every image"), image.shape().to_string());
    }
    count += image.size(0) * image.size(1);
  }
  const Tensor rows = Tensor::empty({count, dim});
  int64_t at = 0;
  for (const Tensor& image : features) {
    const int64_t patches = image.size(0) * image.size(1);
    rows.narrow(0, at, patches).copy_(image.to(DType::f32).contiguous().view({patches, dim}));
    at += patches;
  }
  return rows;
}

// Whether each patch, in the order of all_rows(), is at the border of its image's grid.
std::vector<bool> at_borders(const std::vector<Tensor>& features) {
  std::vector<bool> border;
  for (const Tensor& image : features) {
    for (int64_t y = 0; y < image.size(0); ++y) {
      for (int64_t x = 0; x < image.size(1); ++x) {
        border.push_back(y == 0 || x == 0 || y == image.size(0) - 1 || x == image.size(1) - 1);
      }
    }
  }
  return border;
}

// Whether the share of patches at a border is larger above zero than below.
bool borders_are_above(const Tensor& first, const std::vector<bool>& border) {
  std::array<double, 2> patches{}, at_border{};
  for (size_t i = 0; i < border.size(); ++i) {
    const size_t side = first.data<float>()[i] > 0 ? 1 : 0;
    patches[side] += 1;
    at_border[side] += border[i] ? 1 : 0;
  }
  return at_border[1] * patches[0] > at_border[0] * patches[1];
}

// Whether each patch belongs to the foreground.
std::vector<bool> selected(const std::vector<Tensor>& features, const Tensor& rows, const Foreground& foreground) {
  const auto count = static_cast<size_t>(rows.size(0));
  if (foreground.kind == Foreground::Kind::all) return std::vector<bool>(count, true);
  const Tensor first = pca_scores(fit_pca(rows, 1), rows);
  double limit = 0;
  bool above = true;
  if (foreground.kind == Foreground::Kind::threshold) {
    const auto [low, high] = std::minmax_element(first.data<float>(), first.data<float>() + count);
    limit = *low + foreground.threshold * (static_cast<double>(*high) - *low);
  } else {
    above = !borders_are_above(first, at_borders(features));
  }
  std::vector<bool> chosen(count);
  for (size_t i = 0; i < count; ++i) chosen[i] = (first.data<float>()[i] > limit) == (above != foreground.invert);
  return chosen;
}

Tensor rows_where(const Tensor& rows, const std::vector<bool>& chosen) {
  const int64_t count = std::count(chosen.begin(), chosen.end(), true), dim = rows.size(1);
  if (count < 4) throw Error("pca", "a foreground of at least 4 patches", str(count, " (try another threshold)"));
  const Tensor result = Tensor::empty({count, dim});
  float* to = result.data<float>();
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) to = std::copy_n(rows.data<float>() + static_cast<int64_t>(i) * dim, dim, to);
  }
  return result;
}

}  // namespace

Pca fit_pca(const Tensor& given, int64_t count) {
  const Tensor rows = given.to(DType::f32).contiguous();
  check_rows(rows, count);
  const int64_t dim = rows.size(1);
  const Matrix mean = mean_of(rows);
  const Subspace space = leading_eigenvectors(covariance(centred(rows, mean)), dim, count);
  Pca pca{Tensor::empty({dim}), Tensor::empty({count, dim}), {space.values.begin(), space.values.begin() + count}};
  std::transform(mean.begin(), mean.end(), pca.mean.data<float>(), [](double x) { return static_cast<float>(x); });
  std::transform(space.vectors.begin(), space.vectors.begin() + count * dim, pca.components.data<float>(),
                 [](double x) { return static_cast<float>(x); });
  for (int64_t i = 0; i < count; ++i) fix_sign(pca.components.data<float>() + i * dim, dim);
  return pca;
}

Tensor pca_scores(const Pca& pca, const Tensor& x) {
  const Matrix mean(pca.mean.data<float>(), pca.mean.data<float>() + pca.mean.numel());
  return ops::linear(centred(x.to(DType::f32).contiguous(), mean), pca.components, {});
}

std::vector<PcaMaps> pca_maps(const std::vector<Tensor>& features, const Foreground& foreground) {
  const Tensor rows = all_rows(features);
  const std::vector<bool> chosen = selected(features, rows, foreground);
  const Tensor scores = pca_scores(fit_pca(rows_where(rows, chosen), 3), rows);
  std::array<float, 3> low, high;
  low.fill(std::numeric_limits<float>::infinity());
  high.fill(-std::numeric_limits<float>::infinity());
  const float* score = scores.data<float>();
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (size_t c = 0; c < 3 && chosen[i]; ++c) {
      low[c] = std::min(low[c], score[3 * i + c]);
      high[c] = std::max(high[c], score[3 * i + c]);
    }
  }
  std::vector<PcaMaps> maps;
  size_t at = 0;
  for (const Tensor& image : features) {
    PcaMaps& map = maps.emplace_back();
    map.scores = Tensor::full({image.size(0), image.size(1), 3}, std::numeric_limits<double>::quiet_NaN());
    map.colors = Tensor::zeros({image.size(0), image.size(1), 3});
    for (int64_t i = 0; i < image.size(0) * image.size(1); ++i, ++at) {
      for (size_t c = 0; c < 3 && chosen[at]; ++c) {
        const float value = score[3 * at + c];
        map.scores.data<float>()[3 * i + static_cast<int64_t>(c)] = value;
        map.colors.data<float>()[3 * i + static_cast<int64_t>(c)] =
            high[c] > low[c] ? (value - low[c]) / (high[c] - low[c]) : 0.5F;
      }
    }
  }
  return maps;
}

}  // namespace vitrail::analysis
