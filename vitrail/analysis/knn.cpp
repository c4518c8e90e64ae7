// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/knn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/linear.h"

namespace vitrail::analysis {
namespace {

constexpr int64_t kQueriesPerChunk = 256;  // 256 rows of similarities to 50,000 features take 51 MB

}  // namespace

Tensor normalized_rows(const Tensor& features) {
  if (features.rank() < 1) throw Error("features", "vectors [..., D]", features.shape().to_string());
  const Tensor result = features.to(DType::f32).clone();
  const int64_t width = result.size(-1), count = width > 0 ? result.numel() / width : 0;
  parallel_for(0, count, 64, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      float* row = result.data<float>() + r * width;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(row[i]) * row[i];
      const auto scale = static_cast<float>(1 / std::max(std::sqrt(squares), 1e-12));
      for (int64_t i = 0; i < width; ++i) row[i] *= scale;
    }
  });
  return result;
}

Tensor knn_votes(const Tensor& train, const std::vector<int64_t>& labels, const Tensor& queries, int64_t classes,
                 const KnnOptions& options) {
  const int64_t n = train.size(0), k = std::min(options.k, n);
  if (options.k < 1) throw Error("k-NN", "k of at least 1", str(options.k));
  if (!(options.temperature > 0)) throw Error("k-NN", "a temperature above 0", str(options.temperature));
  if (static_cast<int64_t>(labels.size()) != n || n == 0)
    throw Error("k-NN", str("a label for each of ", n, " training features"), str(labels.size()));
  const Tensor votes = Tensor::zeros({queries.size(0), classes});
  for (int64_t begin = 0; begin < queries.size(0); begin += kQueriesPerChunk) {
    const int64_t count = std::min(kQueriesPerChunk, queries.size(0) - begin);
    const Tensor similarity = ops::linear(queries.narrow(0, begin, count), train, {});  // [count, n]
    parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (int64_t q = first; q < last; ++q) {
        const float* row = similarity.data<float>() + q * n;
        std::iota(order.begin(), order.end(), 0);
        auto is_nearer = [row](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; };
        std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), is_nearer);
        std::sort(order.begin(), order.begin() + k, is_nearer);  // a fixed order of summation
        float* vote = votes.data<float>() + (begin + q) * classes;
        for (int64_t i = 0; i < k; ++i) {
          const int64_t at = order[static_cast<size_t>(i)];
          const double behind = static_cast<double>(row[at]) - row[order[0]];
          vote[labels[static_cast<size_t>(at)]] +=
              options.plain ? 1.0f : static_cast<float>(std::exp(behind / options.temperature));
        }
      }
    });
  }
  return votes;
}

}  // namespace vitrail::analysis
