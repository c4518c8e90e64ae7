// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/image.h"

#include "vitrail/base/error.h"

namespace vitrail::image {

void check_image(const Image& image, const std::string& where) {
  const bool has_size = image.width > 0 && image.height > 0;
  if (!has_size || (image.channels != 1 && image.channels != 3)) {
    throw Error(where, "a non-empty image with 1 or 3 channels",
                str(image.width, "×", image.height, " with ", image.channels, " channels"));
  }
  if (static_cast<int64_t>(image.pixels.size()) != image.height * image.row_bytes()) {
    throw Error(where, str(image.height * image.row_bytes(), " bytes of pixels for ", image.width, "×", image.height),
                str(image.pixels.size()));
  }
}

}  // namespace vitrail::image
