// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/effective_rank.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/symmetric_eigen_internal.h"

namespace vitrail::analysis {
namespace {

// Xᵀ X, [D, D]
std::vector<double> gram_matrix(const Tensor& rows) {
  const int64_t n = rows.size(0), d = rows.size(1);
  std::vector<double> gram(static_cast<size_t>(d * d), 0);
  for (int64_t r = 0; r < n; ++r) {
    const float* const row = rows.data<float>() + r * d;
    for (int64_t i = 0; i < d; ++i) {
      const double value = row[i];
      double* const out = gram.data() + i * d;
      for (int64_t j = 0; j <= i; ++j) out[j] += value * row[j];
    }
  }
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = i + 1; j < d; ++j) gram[static_cast<size_t>(i * d + j)] = gram[static_cast<size_t>(j * d + i)];
  }
  return gram;
}

}  // namespace

double effective_rank(const Tensor& rows) {
  const Tensor dense = rows.contiguous();
  std::vector<double> values = symmetric_eigen(gram_matrix(dense), dense.size(1)).values;
  double sum = 0;
  for (double& value : values) sum += value = std::sqrt(std::max(value, 0.0));  // singular values
  double entropy = 0;
  for (const double value : values) {
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  return std::exp(entropy);
}

}  // namespace vitrail::analysis
