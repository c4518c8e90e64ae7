// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images of `vitrail segment`, with their prompts.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "apps/vitrail/input/image_inputs.h"
#include "apps/vitrail/segment/segment_options.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/prompt_file.h"

namespace vitrail::app {

// A prompt as it was given.
struct GivenPrompt {
  std::string where = {};  // for errors; "FILE:LINE" in a file
  sam::Prompt prompt = {};
  // What becomes the prompt's mask logits: a file of them, or a mask at the image's size.
  std::variant<std::monostate, std::filesystem::path, sam::BinaryMask> mask = {};
  size_t number = 0;  // in its file
};

// The prompt for an image of width × height pixels.  Throws Error that begins with `where`, as check_prompt().
sam::Prompt resolved(const GivenPrompt& given, int64_t width, int64_t height, int64_t mask_size);

// Images are those of the arguments, which share one prompt, or those of a file of prompts, in the order in which it
// names them first.
class SegmentInputs {
 public:
  // Throws Error for files of prompts and masks that cannot be read.
  explicit SegmentInputs(const SegmentOptions& options);

  std::optional<size_t> images() const;       // none: standard input has not ended
  std::optional<std::string> path(size_t i);  // none after the last image
  std::vector<std::byte> bytes(size_t i);     // the content of the file; throws Error
  std::span<const GivenPrompt> prompts(size_t i) const;
  std::optional<size_t> prompts_in_file() const;  // none: the prompt is that of the arguments
  bool any_multimask() const;

 private:
  struct Image {
    std::string path;
    std::vector<GivenPrompt> prompts;
  };
  void group(std::vector<sam::PromptLine> lines);

  std::unique_ptr<ImageInputs> arguments_;  // null: prompts are in a file
  std::vector<Image> images_;               // those of the file
  std::vector<GivenPrompt> shared_;         // the prompt of the arguments, if there is one
  size_t in_file_ = 0;
};

}  // namespace vitrail::app
