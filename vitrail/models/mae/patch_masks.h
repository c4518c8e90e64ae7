// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// ⌊patches · (1 − mask_ratio)⌋, but at least one.  Throws Error unless mask_ratio is in (0, 1), and where it would mask
// none of the patches.
int64_t num_kept_patches(int64_t patches, double mask_ratio);

// The random masks of masked autoencoders (He et al. 2022, section 3): of each image, the indices of the patches that
// the encoder sees, num_kept_patches() of them, drawn uniformly, in ascending order.  `images` are the identities of a
// batch's images.  A mask is a function of (seed, epoch, image): it does not depend on the batch and its order, on
// threads or on processes.
PatchIndices draw_kept_patches(uint64_t seed, uint64_t epoch, const std::vector<int64_t>& images, int64_t patches,
                               double mask_ratio);

}  // namespace vitrail::models
