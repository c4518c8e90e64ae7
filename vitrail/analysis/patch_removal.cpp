// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/patch_removal.h"

#include <algorithm>
#include <numeric>

#include "vitrail/ops/tokens.h"

namespace vitrail::analysis {
namespace {

// Gives a patch of `into` the pixels of `from`; both [1, C, H, W].
void copy_patch(const Tensor& from, const PatchGrid& patches, int64_t patch, const Tensor& into) {
  const int64_t height = from.size(2), width = from.size(3);
  const int64_t top = patch / patches.grid[1] * patches.patch[0], left = patch % patches.grid[1] * patches.patch[1];
  for (int64_t channel = 0; channel < from.size(1); ++channel) {
    for (int64_t y = top; y < top + patches.patch[0]; ++y) {
      const int64_t at = (channel * height + y) * width + left;
      std::copy_n(from.data<float>() + at, patches.patch[1], into.data<float>() + at);
    }
  }
}

// The scores of `count` images, which next() gives one after the other.
template <class Next>
std::vector<float> scores_of_all(int64_t count, const Next& next, const ScoresOf& scores) {
  std::vector<float> result;
  for (int64_t first = 0; first < count; first += kImagesPerPass) {
    std::vector<Tensor> images;
    for (int64_t i = first; i < std::min(count, first + kImagesPerPass); ++i) images.push_back(next(i));
    const std::vector<float> of_pass = scores(ops::cat(images, 0));
    result.insert(result.end(), of_pass.begin(), of_pass.end());
  }
  return result;
}

}  // namespace

Tensor leave_one_patch_out(const Tensor& image, const Tensor& baseline, const PatchGrid& patches,
                           const ScoresOf& scores) {
  const Tensor x = image.contiguous(), without = baseline.contiguous();
  const float whole = scores(x).front();
  const std::vector<float> parts = scores_of_all(
      patches.count(),
      [&](int64_t patch) {
        const Tensor covered = x.clone();
        copy_patch(without, patches, patch, covered);
        return covered;
      },
      scores);
  const Tensor result = Tensor::empty({patches.grid[0], patches.grid[1]});
  for (int64_t patch = 0; patch < patches.count(); ++patch)
    result.data<float>()[patch] = whole - parts[static_cast<size_t>(patch)];
  return result;
}

std::vector<int64_t> descending_patches(const Tensor& map) {
  const Tensor values = map.contiguous();
  std::vector<int64_t> order(static_cast<size_t>(values.numel()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](int64_t a, int64_t b) { return values.data<float>()[a] > values.data<float>()[b]; });
  return order;
}

PatchCurve patch_curve(const Tensor& from, const Tensor& to, const std::vector<int64_t>& order,
                       const PatchGrid& patches, const ScoresOf& scores, int64_t steps) {
  const Tensor current = from.contiguous().clone(), end = to.contiguous();
  const auto count = static_cast<int64_t>(order.size());
  if (steps == 0 || steps > count) steps = count;
  int64_t copied = 0;
  PatchCurve curve;
  curve.scores = scores_of_all(
      steps + 1,
      [&](int64_t step) {
        for (; copied < step * count / steps; ++copied)
          copy_patch(end, patches, order[static_cast<size_t>(copied)], current);
        return current.clone();
      },
      scores);
  for (size_t i = 1; i < curve.scores.size(); ++i)
    curve.area += 0.5 * static_cast<double>(curve.scores[i - 1] + curve.scores[i]) / static_cast<double>(steps);
  return curve;
}

}  // namespace vitrail::analysis
