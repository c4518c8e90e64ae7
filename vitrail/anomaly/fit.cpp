// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "vitrail/anomaly/coreset.h"
#include "vitrail/base/error.h"

namespace vitrail::anomaly {
namespace {

bool is_held_out(size_t photo) { return photo % kMinHeldOut == kMinHeldOut - 1; }

// The patches of all images, with Mask::all those of their foregrounds.
Tensor concatenated(const std::vector<const Patches*>& images, Mask mask) {
  const auto keeps = [mask](const Patches& image, int64_t i) {
    return mask != Mask::all || image.foreground.empty() || image.foreground[static_cast<size_t>(i)] != 0;
  };
  const int64_t width = images.front()->features.size(1);
  int64_t count = 0;
  for (const Patches* image : images) {
    if (image->features.size(1) != width)
      throw Error("features", str("of width ", width), str(image->features.size(1)));
    for (int64_t i = 0; i < image->features.size(0); ++i) count += keeps(*image, i) ? 1 : 0;
  }
  const Tensor rows = Tensor::empty({count, width});
  float* to = rows.data<float>();
  for (const Patches* image : images) {
    const Tensor values = image->features.contiguous();
    for (int64_t i = 0; i < values.size(0); ++i) {
      if (keeps(*image, i)) to = std::copy_n(values.data<float>() + i * width, width, to);
    }
  }
  return rows;
}

Tensor chosen_patches(const std::vector<const Patches*>& images, const BankOptions& options) {
  const Tensor rows = concatenated(images, options.mask);
  const auto count = std::max<int64_t>(1, std::llround(options.coreset * static_cast<double>(rows.size(0))));
  const std::vector<int64_t> chosen = coreset(rows, count, options.seed);
  const int64_t width = rows.size(1);
  const Tensor patches = Tensor::empty({count, width});
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(patches.data<float>() + i * width, rows.data<float>() + chosen[static_cast<size_t>(i)] * width,
                sizeof(float) * static_cast<size_t>(width));
  return patches;
}

void set_thresholds(const std::vector<Patches>& images, Bank& bank) {
  const auto rotations = static_cast<size_t>(bank.options.rotations);
  std::vector<const Patches*> kept;
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

void fit(const std::vector<Patches>& images, Bank& bank) {
  const auto rotations = static_cast<size_t>(bank.options.rotations);
  if (images.empty()) throw Error("images", "at least one good image", "none");
  if (images.size() % rotations != 0) throw Error("images", str("a multiple of ", rotations), str(images.size()));
  if (images.size() / rotations >= kMinHeldOut) set_thresholds(images, bank);
  std::vector<const Patches*> all;
  for (const Patches& image : images) all.push_back(&image);
  bank.patches = chosen_patches(all, bank.options);
  bank.images = static_cast<int64_t>(images.size() / rotations);
}

}  // namespace vitrail::anomaly
