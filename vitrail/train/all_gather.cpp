// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/train/all_gather_internal.h"

namespace vitrail::train {
namespace {

constexpr size_t kFields = 5;  // of a wrong answer

// The wrong answers of all processes: each has a place of its own in a sum that is zero elsewhere.
std::vector<WrongAnswer> gather_worst(const ProcessGroup& crew, const std::vector<WrongAnswer>& worst) {
  const size_t stride = 1 + kWorstAnswers * kFields;
  std::vector<double> values(static_cast<size_t>(crew.size()) * stride);
  double* at = values.data() + static_cast<size_t>(crew.rank()) * stride;
  *at++ = static_cast<double>(worst.size());
  for (const WrongAnswer& w : worst) {
    for (const double field : {static_cast<double>(w.sample), static_cast<double>(w.truth),
                               static_cast<double>(w.answer), w.confidence, w.truth_confidence})
      *at++ = field;
  }
  crew.sum(values);
  std::vector<WrongAnswer> all;
  for (size_t process = 0; process < static_cast<size_t>(crew.size()); ++process) {
    const double* from = values.data() + process * stride;
    const auto count = static_cast<size_t>(*from++);
    for (size_t i = 0; i < count; ++i, from += kFields)
      all.push_back({std::llround(from[0]), std::llround(from[1]), std::llround(from[2]), from[3], from[4]});
  }
  return all;
}

}  // namespace

Evaluation all_gather(const ProcessGroup& crew, Evaluation part) {
  if (crew.size() == 1) return part;
  const auto own = static_cast<double>(part.images);
  std::vector<double> values{own, static_cast<double>(part.skipped), part.loss * own, std::round(part.top1 * own),
                             std::round(part.top5 * own)};
  for (const auto& row : part.confusion) values.insert(values.end(), row.begin(), row.end());
  crew.sum(values);
  const double images = std::max(1.0, values[0]);
  Evaluation all;
  all.images = std::llround(values[0]);
  all.skipped = std::llround(values[1]);
  all.loss = values[2] / images;
  all.top1 = values[3] / images;
  all.top5 = values[4] / images;
  all.confusion = std::move(part.confusion);
  size_t at = 5;
  for (auto& row : all.confusion) {
    for (int64_t& count : row) count = std::llround(values[at++]);
  }
  all.worst = gather_worst(crew, part.worst);
  keep_worst(all.worst);
  return all;
}

}  // namespace vitrail::train
