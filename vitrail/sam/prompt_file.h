// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prompts in a file: a JSON object per line.
//
//   {"image": "photo.jpg", "points": [[200, 150, 1], [20, 30, 0]], "box": [10, 20, 300, 400],
//    "mask_logits": "mask.npy", "multimask": true}
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/base/npy.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/prompt.h"

namespace vitrail::sam {

struct PromptLine {
  std::string where = {};  // "FILE:LINE", for errors
  std::filesystem::path image = {};
  Prompt prompt = {};                      // without mask_logits
  std::filesystem::path mask_logits = {};  // empty: none
};

// Paths are relative to `folder`.  Empty lines are skipped.  Throws Error naming `where` and the line for text that is
// no such object, for unknown fields, labels other than 0 and 1, and a prompt without points, box and mask_logits.
std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& where,
                                      const std::filesystem::path& folder);

// parse_prompts() of a file.
std::vector<PromptLine> read_prompts(const std::filesystem::path& file);

// Logits [h, w] of a mask in a .npy file, which may have axes of 1 in front, as f32.  Throws Error naming the path.
Tensor read_mask_logits(const std::filesystem::path& file);
// The same for an array in memory; errors name `where`.
Tensor mask_logits_of(NpyArray array, const std::string& where);

// The logits [size, size] of a mask at the image's size, of the padded frame whose long side is `size`: the log-odds of
// the covered part of a pixel, which is limited to 0.001 to 0.999.
Tensor logits_of(const BinaryMask& mask, int64_t size);

}  // namespace vitrail::sam
