// SPDX-License-Identifier: Apache-2.0
// Generated images for the tests of the program.
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {

std::filesystem::path image_folder(int n) {
  const std::filesystem::path folder = scratch_folder();
  for (int i = 0; i < n; ++i) {
    image::Image generated = image::make_image(40 + i, 36, 3);
    for (size_t p = 0; p < generated.pixels.size(); ++p) {
      generated.pixels[p] = static_cast<uint8_t>((p * static_cast<size_t>(7 + i) + p / 40 * 13) % 256);
    }
    image::write_png(folder / (std::string(1, static_cast<char>('a' + i)) + ".png"), generated);
  }
  return folder;
}

}  // namespace vitrail::testing
