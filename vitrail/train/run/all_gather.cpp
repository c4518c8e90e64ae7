// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/all_gather_internal.h"

#include <algorithm>
#include <cmath>

namespace vitrail::train {
namespace {

constexpr size_t kFields = 5;  // values of a Misclassification

// Gathers by an all-reduce: each rank writes to its own part of an array that is zero elsewhere.
std::vector<Misclassification> gather_worst(const ProcessGroup& group, const std::vector<Misclassification>& worst) {
  const size_t stride = 1 + kMaxMisclassifications * kFields;  // a count, then the entries
  std::vector<double> values(static_cast<size_t>(group.size()) * stride);
  double* to = values.data() + static_cast<size_t>(group.rank()) * stride;
  *to++ = static_cast<double>(worst.size());
  for (const Misclassification& m : worst) {
    for (const double field : {static_cast<double>(m.sample), static_cast<double>(m.label),
                               static_cast<double>(m.prediction), m.prediction_probability, m.label_probability})
      *to++ = field;
  }
  group.all_reduce_sum(values);
  std::vector<Misclassification> all;
  for (size_t rank = 0; rank < static_cast<size_t>(group.size()); ++rank) {
    const double* from = values.data() + rank * stride;
    const auto count = static_cast<size_t>(*from++);
    for (size_t i = 0; i < count; ++i, from += kFields)
      all.push_back({std::llround(from[0]), std::llround(from[1]), std::llround(from[2]), from[3], from[4]});
  }
  return all;
}

}  // namespace

ClassEvaluation all_gather(const ProcessGroup& group, ClassEvaluation local) {
  if (group.size() == 1) return local;
  const auto own = static_cast<double>(local.images);
  std::vector<double> values{own, static_cast<double>(local.skipped), local.loss * own, std::round(local.top1 * own),
                             std::round(local.top5 * own)};
  for (const auto& row : local.confusion) values.insert(values.end(), row.begin(), row.end());
  group.all_reduce_sum(values);
  const double images = std::max(1.0, values[0]);
  ClassEvaluation all;
  all.images = std::llround(values[0]);
  all.skipped = std::llround(values[1]);
  all.loss = values[2] / images;
  all.top1 = values[3] / images;
  all.top5 = values[4] / images;
  all.confusion = std::move(local.confusion);
  size_t next = 5;
  for (auto& row : all.confusion) {
    for (int64_t& count : row) count = std::llround(values[next++]);
  }
  all.worst = gather_worst(group, local.worst);
  keep_worst(all.worst);
  return all;
}

}  // namespace vitrail::train
