// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_inputs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/prompt_text.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

sam::BinaryMask read_mask(const fs::path& file) {
  return sam::mask_of_image(image::read_image(file, {.mode = image::ColorMode::grey}), file.string());
}

Tensor mask_logits(const GivenPrompt& given, int64_t width, int64_t height, int64_t mask_size) {
  if (const auto* file = std::get_if<fs::path>(&given.mask)) return sam::read_mask_logits(*file);
  const auto* mask = std::get_if<sam::BinaryMask>(&given.mask);
  return mask ? sam::logits_of_image_mask(*mask, width, height, mask_size) : Tensor();
}

}  // namespace

sam::Prompt resolved(const GivenPrompt& given, int64_t width, int64_t height, int64_t mask_size) {
  sam::Prompt prompt = given.prompt;
  try {
    prompt.mask_logits = mask_logits(given, width, height, mask_size);
  } catch (const Error& error) {
    throw Error(given.where + ": " + error.what());
  }
  sam::clip_box(prompt, width, height, given.where);
  sam::check_prompt(prompt, width, height, mask_size, given.where);
  return prompt;
}

SegmentInputs::SegmentInputs(const SegmentOptions& options) {
  if (!options.prompts.empty()) {
    group(sam::read_prompts(options.prompts));
    return;
  }
  if (options.has_prompt()) {
    GivenPrompt given{.where = "prompt", .prompt = options.prompt()};
    if (fs::path(options.mask).extension() == ".npy") {
      static_cast<void>(sam::read_mask_logits(options.mask));  // fails before the model is loaded
      given.mask = fs::path(options.mask);
    } else if (!options.mask.empty()) {
      given.mask = read_mask(options.mask);
    }
    shared_.push_back(std::move(given));
  }
  arguments_ = std::make_unique<ImageInputs>(options.inputs);
}

void SegmentInputs::group(std::vector<sam::PromptLine> lines) {
  std::map<fs::path, size_t> known;
  in_file_ = lines.size();
  for (size_t number = 0; number < lines.size(); ++number) {
    sam::PromptLine& line = lines[number];
    const auto [at, added] = known.emplace(line.image.lexically_normal(), images_.size());
    if (added) images_.push_back({line.image.string(), {}});
    GivenPrompt given{.where = line.where, .prompt = std::move(line.prompt), .number = number};
    if (!line.mask_logits.empty()) given.mask = line.mask_logits;
    images_[at->second].prompts.push_back(std::move(given));
  }
}

std::optional<size_t> SegmentInputs::images() const { return arguments_ ? arguments_->count() : images_.size(); }

std::optional<std::string> SegmentInputs::path(size_t i) {
  if (!arguments_) return i < images_.size() ? std::optional(images_[i].path) : std::nullopt;
  const auto input = arguments_->at(i);
  return input ? std::optional(input->path) : std::nullopt;
}

std::vector<std::byte> SegmentInputs::bytes(size_t i) {
  return arguments_ ? arguments_->bytes(i) : read_file(images_[i].path, image::kMaxFileBytes);
}

std::span<const GivenPrompt> SegmentInputs::prompts(size_t i) const {
  return arguments_ ? shared_ : images_[i].prompts;
}

std::optional<size_t> SegmentInputs::prompts_in_file() const {
  return arguments_ ? std::nullopt : std::optional(in_file_);
}

bool SegmentInputs::any_multimask() const {
  const auto multimask = [](const GivenPrompt& given) { return given.prompt.multimask; };
  return std::ranges::any_of(shared_, multimask) || std::ranges::any_of(images_, [&](const Image& image) {
           return std::ranges::any_of(image.prompts, multimask);
         });
}

}  // namespace vitrail::app
