// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/knn.h"

#include <algorithm>
#include <cmath>

#include "vitrail/analysis/nearest.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"

namespace vitrail::analysis {

Tensor normalized_rows(const Tensor& features) {
  if (features.rank() < 1) throw Error("features", "vectors [..., D]", features.shape().to_string());
  const Tensor result = features.to(DType::f32).clone();
  const int64_t width = result.size(-1), count = width > 0 ? result.numel() / width : 0;
  kernels::normalize_rows(result.data<float>(), count, width);
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
  float* vote = votes.data<float>();
  for (const std::vector<Neighbor>& nearest : nearest_rows(queries, TensorRows(train), k)) {
    for (const Neighbor& neighbor : nearest) {
      const double behind = static_cast<double>(neighbor.score) - nearest.front().score;
      vote[labels[static_cast<size_t>(neighbor.row)]] +=
          options.plain ? 1.0f : static_cast<float>(std::exp(behind / options.temperature));
    }
    vote += classes;
  }
  return votes;
}

}  // namespace vitrail::analysis
