// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points, boxes and masks of prompts as users give them: as text, and as images.
#include <string>
#include <string_view>

#include "vitrail/image/image.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/prompt.h"

namespace vitrail::sam {

// "X,Y" or "X,Y,LABEL".  Throws Error naming `where` for other text and labels.
Point parse_point(std::string_view text, const std::string& where);

// "X0,Y0,X1,Y1".  Throws Error naming `where` for other text.
Box parse_box(std::string_view text, const std::string& where);

// The mask that a grey image shows: pixels that are not 0.  Throws Error naming `where` for an image of more than two
// values, and without a pixel in the object.
BinaryMask mask_of_image(const image::Image& grey, const std::string& where);

// logits_of() of a mask for an image of width × height pixels.  Throws Error for a mask of another size.
Tensor logits_of_image_mask(const BinaryMask& mask, int64_t width, int64_t height, int64_t size);

}  // namespace vitrail::sam
