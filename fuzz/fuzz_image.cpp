// SPDX-License-Identifier: Apache-2.0
// Fuzzes the image decoders.  Every input must give an Image or a vitrail::Error.
//   corpus: tests/fixtures/image/decode/*
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vitrail::image::DecodeOptions options;
  options.max_pixels = 1 << 16;
  options.apply_exif = true;
  try {
    vitrail::image::decode({reinterpret_cast<const std::byte*>(data), size}, options, "fuzz");
  } catch (const vitrail::Error&) {
  }
  return 0;
}
