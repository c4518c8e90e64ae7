// SPDX-License-Identifier: Apache-2.0
// Fuzzes the decoder of GIF files.
//   corpus: tests/fixtures/image/decode/*.gif
#include "fuzz/decoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return vitrail::fuzz::decode_input(vitrail::image::decode_gif, data, size);
}
