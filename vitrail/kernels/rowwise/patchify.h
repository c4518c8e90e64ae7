// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// Cuts images into patches (Dosovitskiy et al. 2021, section 3.1): image [B, C, H, W] contiguous → rows
// [B · (H/P)(W/P), C·P·P].  Patches are in row-major order, the elements of a patch in the order (c, y, x) of a
// convolution's weight.  The remainder of H or W is dropped.
void patchify(const float* image, int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t patch_height,
              int64_t patch_width, float* rows);

}  // namespace vitrail::kernels
