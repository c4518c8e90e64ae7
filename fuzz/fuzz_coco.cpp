// SPDX-License-Identifier: Apache-2.0
// Fuzzes COCO's instance annotations.  Every input must give a dataset or a vitrail::Error, and a mask must have the
// size of its image and at least one pixel.
#include "fuzz/inputs.h"
#include "vitrail/sam/instance_datasets_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  constexpr int64_t kWidth = 64, kHeight = 48;
  fuzz::attempt([&] {
    const auto dataset = sam::parse_coco_instances(std::string(fuzz::text_of(data, size)), "fuzz", "folder");
    for (int64_t i = 0; i < dataset->size(); ++i) {
      fuzz::attempt([&] {
        for (const sam::Rle& mask : dataset->masks(i, kWidth, kHeight)) {
          if (mask.width != kWidth || mask.height != kHeight || sam::area(mask) < 1) std::abort();
        }
      });
    }
  });
  return 0;
}
