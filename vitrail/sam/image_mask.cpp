// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/image_mask.h"

#include "vitrail/ops/resize.h"

namespace vitrail::sam {

BinaryMask image_mask(const Tensor& logits, int64_t width, int64_t height) {
  return threshold(ops::resize_bilinear(logits, height, width));
}

}  // namespace vitrail::sam
