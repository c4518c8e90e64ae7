// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "vitrail/anomaly/coreset.h"
#include "vitrail/anomaly/patches.h"
#include "vitrail/base/error.h"

namespace vitrail::anomaly {
namespace {

bool is_held_out(size_t photo) { return photo % kMinHeldOut == kMinHeldOut - 1; }

Tensor concatenated(const std::vector<const Tensor*>& images) {
  int64_t count = 0;
  for (const Tensor* image : images) count += image->size(0);
  const int64_t width = images.front()->size(1);
  const Tensor rows = Tensor::empty({count, width});
  float* to = rows.data<float>();
  for (const Tensor* image : images) {
    if (image->size(1) != width) throw Error("features", str("of width ", width), str(image->size(1)));
    const Tensor values = image->contiguous();
    to = std::copy(values.data<float>(), values.data<float>() + values.numel(), to);
  }
  return rows;
}

Tensor chosen_patches(const std::vector<const Tensor*>& images, const BankOptions& options) {
  const Tensor rows = concatenated(images);
  const auto count = std::max<int64_t>(1, std::llround(options.coreset * static_cast<double>(rows.size(0))));
  const std::vector<int64_t> chosen = coreset(rows, count, options.seed);
  const int64_t width = rows.size(1);
  const Tensor patches = Tensor::empty({count, width});
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(patches.data<float>() + i * width, rows.data<float>() + chosen[static_cast<size_t>(i)] * width,
                sizeof(float) * static_cast<size_t>(width));
  return patches;
}

void set_thresholds(const std::vector<Tensor>& images, Bank& bank) {
  const auto rotations = static_cast<size_t>(bank.options.rotations);
  std::vector<const Tensor*> kept;
  for (size_t i = 0; i < images.size(); ++i)
    if (!is_held_out(i / rotations)) kept.push_back(&images[i]);
  const PatchSearch search(chosen_patches(kept, bank.options), bank.options.method);
  double score = 0, distance = 0;
  for (size_t i = 0; i < images.size(); i += rotations) {
    if (!is_held_out(i / rotations)) continue;
    const PatchDistances result = search.distances(images[i]);
    score = std::max(score, result.score);
    distance = std::max(distance, double{*std::ranges::max_element(result.distances)});
  }
  bank.threshold = score;
  bank.pixel_threshold = distance;
}

}  // namespace

void fit(const std::vector<Tensor>& images, Bank& bank) {
  const auto rotations = static_cast<size_t>(bank.options.rotations);
  if (images.empty()) throw Error("images", "at least one good image", "none");
  if (images.size() % rotations != 0) throw Error("images", str("a multiple of ", rotations), str(images.size()));
  if (images.size() / rotations >= kMinHeldOut) set_thresholds(images, bank);
  std::vector<const Tensor*> all;
  for (const Tensor& image : images) all.push_back(&image);
  bank.patches = chosen_patches(all, bank.options);
  bank.images = static_cast<int64_t>(images.size() / rotations);
}

}  // namespace vitrail::anomaly
