// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pixels of patches, which masked autoencoders predict.
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// The mean of each patch's C·P·P pixels, and their deviation √(v + 1e-6), v being the variance divided by C·P·P − 1.
// [B, N, 1] each, without gradients.
struct PatchStatistics {
  Tensor mean, deviation;
};

// patches [B, N, C·P·P] with C·P·P > 1, f32 or f64.
PatchStatistics patch_statistics(const Tensor& patches);

// (patches − mean) / deviation, the targets of MAE's norm_pix_loss; and its inverse.
Tensor normalized_patches(const Tensor& patches, const PatchStatistics& statistics);
Tensor denormalized_patches(const Tensor& patches, const PatchStatistics& statistics);

// The inverse of ops::patchify(): [B, rows·columns, C·P·P] → [B, C, rows·P, columns·P].
Tensor image_of_patches(const Tensor& patches, std::array<int64_t, 2> grid, std::array<int64_t, 2> patch_size);

// The other patches of each image, in ascending order.
PatchIndices masked_patches(const PatchIndices& kept, int64_t patches);

}  // namespace vitrail::models
