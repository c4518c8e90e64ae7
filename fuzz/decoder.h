// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the targets of the image formats share.
#include <cstdlib>

#include "fuzz/inputs.h"
#include "vitrail/image/codecs_internal.h"

namespace vitrail::fuzz {

// Decodes the input in both colour modes.  It must give an Image of the promised size or an Error.
template <class Decoder>
int decode_input(Decoder decode, const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = bytes_of(text_of(data, size));
  for (const image::ColorMode mode : {image::ColorMode::rgb, image::ColorMode::grey}) {
    const image::DecodeOptions options{.mode = mode, .max_pixels = 1 << 16};
    attempt([&] {
      const image::Image image = decode(bytes, options, "fuzz");
      if (std::ssize(image.pixels) != image.width * image.height * image.channels) std::abort();
      if (image.width < 1 || image.height < 1 || image.width * image.height > options.max_pixels) std::abort();
    });
  }
  return 0;
}

}  // namespace vitrail::fuzz
