// SPDX-License-Identifier: Apache-2.0
// Fuzzes the decoder of Netpbm files.  It is called for the signatures P1 to P6 only.
//   corpus: tests/fixtures/image/decode/*.p[bgpn]m
#include "fuzz/decoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3 || data[0] != 'P' || data[1] < '1' || data[1] > '6') return 0;
  return vitrail::fuzz::decode_input(vitrail::image::decode_pnm, data, size);
}
