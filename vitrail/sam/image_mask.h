// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

// The pixels of a width × height image whose logit is positive.  logits [h, w] f32: those of the whole image, between
// which they are interpolated bilinearly (half-pixel centres, no antialiasing).
BinaryMask image_mask(const Tensor& logits, int64_t width, int64_t height);

}  // namespace vitrail::sam
