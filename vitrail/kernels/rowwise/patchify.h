// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// Cuts images into patches: image [B, C, H, W] contiguous → rows [B · (H/P)(W/P), C·P·P], patch order row-major, the
// elements of a patch in (c, y, x) order, as a convolution's weight has them.  A remainder of H or W is left out.
void patchify(const float* image, int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t patch_height,
              int64_t patch_width, float* rows);

}  // namespace vitrail::kernels
