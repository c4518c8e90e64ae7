// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/patchify.h"

#include <cstring>

#include "vitrail/base/parallel.h"

namespace vitrail::kernels {

void patchify(const float* image, int64_t batch, int64_t channels, int64_t height, int64_t width, int64_t patch_height,
              int64_t patch_width, float* rows) {
  const int64_t grid_height = height / patch_height, grid_width = width / patch_width;
  const int64_t row_length = channels * patch_height * patch_width;
  parallel_for(0, batch * grid_height, 1, [&](int64_t first, int64_t last) {
    for (int64_t line = first; line < last; ++line) {
      const int64_t b = line / grid_height, top = line % grid_height * patch_height;
      float* const line_rows = rows + line * grid_width * row_length;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t y = 0; y < patch_height; ++y) {
          // In the order of the image: sequential reads matter more than sequential writes.
          const float* const from = image + ((b * channels + c) * height + top + y) * width;
          float* const to = line_rows + (c * patch_height + y) * patch_width;
          for (int64_t x = 0; x < grid_width; ++x) {
            std::memcpy(to + x * row_length, from + x * patch_width, static_cast<size_t>(patch_width) * sizeof(float));
          }
        }
      }
    }
  });
}

}  // namespace vitrail::kernels
