// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/token_statistics.h"

#include <cmath>

namespace vitrail::analysis {
namespace {

// A row has the attention of one query to N tokens.
double entropy_of(const float* row, int64_t tokens) {
  double entropy = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    const auto weight = static_cast<double>(row[i]);
    if (weight > 0) entropy -= weight * std::log(weight);
  }
  return entropy;
}

double distance_between(int64_t a, int64_t b, const PatchGrid& patches) {
  const int64_t rows = a / patches.grid[1] - b / patches.grid[1], columns = a % patches.grid[1] - b % patches.grid[1];
  return std::hypot(static_cast<double>(rows * patches.patch[0]), static_cast<double>(columns * patches.patch[1]));
}

}  // namespace

std::vector<HeadStatistics> head_statistics(const Tensor& weights, int64_t prefix, const PatchGrid& patches) {
  const Tensor attention = weights.contiguous();
  const int64_t tokens = attention.size(1), count = patches.count();
  std::vector<HeadStatistics> result(static_cast<size_t>(attention.size(0)));
  for (size_t head = 0; head < result.size(); ++head) {
    HeadStatistics& statistics = result[head];
    for (int64_t query = 0; query < tokens; ++query) {
      const float* const row = attention.data<float>() + (static_cast<int64_t>(head) * tokens + query) * tokens;
      statistics.entropy += entropy_of(row, tokens) / static_cast<double>(tokens);
      if (query < prefix) continue;
      double on_patches = 0, on_special = 0, distance = 0;
      for (int64_t key = 0; key < prefix; ++key) on_special += static_cast<double>(row[key]);
      for (int64_t patch = 0; patch < count; ++patch) {
        const auto weight = static_cast<double>(row[prefix + patch]);
        on_patches += weight;
        distance += weight * distance_between(query - prefix, patch, patches);
      }
      statistics.special += on_special / static_cast<double>(count);
      if (on_patches > 0) statistics.distance += distance / on_patches / static_cast<double>(count);
    }
  }
  return result;
}

std::vector<double> token_norms(const Tensor& tokens) {
  const Tensor x = tokens.contiguous();
  std::vector<double> norms;
  for (int64_t token = 0; token < x.size(0); ++token) {
    double sum = 0;
    for (int64_t i = 0; i < x.size(1); ++i) {
      const auto value = static_cast<double>(x.data<float>()[token * x.size(1) + i]);
      sum += value * value;
    }
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

}  // namespace vitrail::analysis
