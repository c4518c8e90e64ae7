// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/effective_rank.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/symmetric_eigen_internal.h"

namespace vitrail::analysis {
namespace {

// X Xᵀ of a matrix X [n, d].
std::vector<double> gram_matrix(const Tensor& x) {
  const int64_t n = x.size(0), d = x.size(1);
  std::vector<double> gram(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) {
    const float* const row = x.data<float>() + i * d;
    for (int64_t j = 0; j <= i; ++j) {
      const float* const other = x.data<float>() + j * d;
      double sum = 0;
      for (int64_t k = 0; k < d; ++k) sum += static_cast<double>(row[k]) * other[k];
      gram[static_cast<size_t>(i * n + j)] = gram[static_cast<size_t>(j * n + i)] = sum;
    }
  }
  return gram;
}

}  // namespace

double effective_rank(const Tensor& rows) {
  // X Xᵀ and Xᵀ X have the same eigenvalues but for zeros.
  const Tensor x = rows.size(0) > rows.size(1) ? rows.permute({1, 0}).contiguous() : rows.contiguous();
  std::vector<double> values = symmetric_eigen(gram_matrix(x), x.size(0)).values;
  double sum = 0;
  for (double& value : values) sum += value = std::sqrt(std::max(value, 0.0));  // singular values
  double entropy = 0;
  for (const double value : values) {
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  return std::exp(entropy);
}

}  // namespace vitrail::analysis
