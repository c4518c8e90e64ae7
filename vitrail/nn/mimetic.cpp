// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/mimetic.h"

#include <cmath>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/base/symmetric_eigen_internal.h"

namespace vitrail::nn {
namespace {

// noise · Z + identity · I [n, n], with Z uniform of variance 1/n.
std::vector<double> noisy_identity(double noise, double identity, int64_t n, uint64_t key) {
  RandomStream random(key);
  const double bound = noise * std::sqrt(3.0 / static_cast<double>(n));  // a uniform distribution on ±√3 has variance 1
  std::vector<double> m(static_cast<size_t>(n * n));
  for (double& value : m) value = bound * (2 * random.uniform() - 1);
  for (int64_t i = 0; i < n; ++i) m[i * n + i] += identity;
  return m;
}

// M ≈ leftᵀ right: rows √s uᵀ and √s vᵀ of the largest singular values s, [rank, n] each.  v are eigenvectors of MᵀM,
// and u = M v / s, so that the product at full rank is M even with rounding errors in s.
struct Factors {
  std::vector<double> left, right;
};

Factors factors_of(const std::vector<double>& m, int64_t n, int64_t rank) {
  std::vector<double> gram(static_cast<size_t>(n * n));
  for (int64_t r = 0; r < n; ++r) {
    const double* const row = m.data() + r * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) gram[i * n + j] += row[i] * row[j];
    }
  }
  const SymmetricEigen eigen = symmetric_eigen(std::move(gram), n);
  Factors result{std::vector<double>(static_cast<size_t>(rank * n)),
                 std::vector<double>(static_cast<size_t>(rank * n))};
  for (int64_t k = 0; k < rank; ++k) {
    const double root = std::sqrt(std::sqrt(std::max(0.0, eigen.values[k])));  // √s, because s² is the eigenvalue
    if (root < 1e-6) continue;  // M is nearly singular in this direction: both rows stay zero
    const double* const v = eigen.vectors.data() + k * n;
    for (int64_t r = 0; r < n; ++r) {
      double projection = 0;
      for (int64_t c = 0; c < n; ++c) projection += m[r * n + c] * v[c];
      result.left[k * n + r] = projection / root;
      result.right[k * n + r] = root * v[r];
    }
  }
  return result;
}

}  // namespace

void mimetic_attention(const MimeticOptions& options, int64_t heads, uint64_t key, const Tensor& qkv_weight,
                       const Tensor& proj_weight) {
  const int64_t n = proj_weight.size(0), inner = proj_weight.size(1);
  if (!(qkv_weight.shape() == Shape{3 * inner, n}) || heads < 1 || inner % heads != 0 || inner > n) {
    throw Error("mimetic initialisation", str("weights [3·H·d, C] and [C, H·d] of H = ", heads, " heads with H·d ≤ C"),
                str(qkv_weight.shape(), " and ", proj_weight.shape()));
  }
  const int64_t width = inner / heads;
  float *const qkv = qkv_weight.data<float>(), *const proj = proj_weight.data<float>();
  auto store = [](const std::vector<double>& from, float* to) {
    for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
  };
  parallel_for(0, heads + 1, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const uint64_t own = random_key("mimetic", key, static_cast<uint64_t>(part));
      if (part > 0) {
        const int64_t at = (part - 1) * width * n;
        const Factors f = factors_of(noisy_identity(options.qk_noise, options.qk_identity, n, own), n, width);
        store(f.left, qkv + at);
        store(f.right, qkv + inner * n + at);
        continue;
      }
      const Factors f = factors_of(noisy_identity(options.vo_noise, -options.vo_identity, n, own), n, inner);
      store(f.left, qkv + 2 * inner * n);
      for (int64_t k = 0; k < inner; ++k) {
        for (int64_t c = 0; c < n; ++c) proj[c * inner + k] = static_cast<float>(f.right[k * n + c]);
      }
    }
  });
}

}  // namespace vitrail::nn
