// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a request wants of Segment Anything: the options of `vitrail segment`.
#include <optional>
#include <variant>

#include "vitrail/sam/automatic.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/tasks/request_options.h"

namespace vitrail::tasks {

struct SegmentRequest {
  std::optional<sam::Prompt> prompt = {};                      // without its mask
  std::variant<std::monostate, Tensor, sam::BinaryMask> mask;  // logits, or a mask at the image's size
  std::optional<sam::AutomaticOptions> everything = {};
};

// Takes the options point, box, mask, single, everything and those of everything.  A mask is a PNG or another image, or
// a .npy file of logits, as bytes or as data URI.  Throws Error for options that do not fit together.
SegmentRequest take_segment_request(RequestOptions& options, int64_t max_pixels);

// The prompt for an image of width × height pixels.  Throws Error as sam::check_prompt().
sam::Prompt resolved_prompt(const SegmentRequest& request, int64_t width, int64_t height, int64_t mask_size);

}  // namespace vitrail::tasks
