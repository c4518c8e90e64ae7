// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/patch_masks.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/nn/dropout.h"

namespace vitrail::models {

int64_t num_kept_patches(int64_t patches, double mask_ratio) {
  if (!(mask_ratio > 0 && mask_ratio < 1)) throw Error("mask_ratio", "a value between 0 and 1", str(mask_ratio));
  const auto kept = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(patches) * (1 - mask_ratio)));
  if (kept < patches) return kept;
  throw Error("mask_ratio", str("a value that masks one of ", patches, " patches"), str(mask_ratio));
}

PatchIndices draw_kept_patches(uint64_t seed, uint64_t epoch, const std::vector<int64_t>& images, int64_t patches,
                               double mask_ratio) {
  const auto count = static_cast<size_t>(num_kept_patches(patches, mask_ratio));
  const nn::RandomScope scope(seed, epoch, images);
  PatchIndices kept = nn::random_orders("patch_mask", std::ssize(images), patches);
  for (std::vector<int64_t>& order : kept) {
    order.resize(count);
    std::ranges::sort(order);
  }
  return kept;
}

}  // namespace vitrail::models
