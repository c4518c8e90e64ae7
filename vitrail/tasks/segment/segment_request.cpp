// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/segment/segment_request_internal.h"

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/prompt_file.h"
#include "vitrail/sam/prompt_text.h"

namespace vitrail::tasks {
namespace {

constexpr size_t kMaxPoints = 1'024;         // each is a token of the mask decoder
constexpr int64_t kMaxPointsPerSide = 256;   // 65,536 points
constexpr int64_t kMaxPointsPerBatch = 256;  // 200 MB of logits

void take_mask(RequestOptions& options, int64_t max_pixels, SegmentRequest& request) {
  std::optional<std::string> given = options.text("mask");
  if (!given) return;
  if (given->starts_with("data:")) given = from_data_uri(*given, "mask");
  const auto bytes = std::as_bytes(std::span(*given));
  if (given->starts_with("\x93NUMPY")) {
    request.mask = sam::mask_logits_of(parse_npy(bytes, "mask"), "mask");
  } else {
    const image::DecodeOptions decode{.mode = image::ColorMode::grey, .max_pixels = max_pixels};
    request.mask = sam::mask_of_image(image::decode(bytes, decode, "mask"), "mask");
  }
  if (!request.prompt) request.prompt.emplace();
}

void take_prompt(RequestOptions& options, int64_t max_pixels, SegmentRequest& request) {
  const std::vector<std::string> points = options.texts("point");
  if (points.size() > kMaxPoints) throw Error("point", str("at most ", kMaxPoints, " points"), str(points.size()));
  if (!points.empty()) request.prompt.emplace();
  for (const std::string& point : points) request.prompt->points.push_back(sam::parse_point(point, "point"));
  if (const auto box = options.text("box")) {
    if (!request.prompt) request.prompt.emplace();
    request.prompt->box = sam::parse_box(*box, "box");
  }
  take_mask(options, max_pixels, request);
  if (!options.flag("single")) return;
  if (!request.prompt) throw Error("single", "point, box or mask beside it", "none");
  request.prompt->multimask = false;
}

// Options of everything; `given` gets the name of one that was given.
sam::AutomaticOptions take_automatic(RequestOptions& options, std::string& given) {
  sam::AutomaticOptions automatic;
  options.integer("points_per_side", automatic.points_per_side, 1, kMaxPointsPerSide);
  options.integer("points_per_batch", automatic.points_per_batch, 1, kMaxPointsPerBatch);
  sam::describe_automatic(options, automatic);
  for (const FieldRow& row : rows_of(sam::describe_automatic)) {
    if (!options.texts(row.option).empty()) given = row.option;
  }
  if (automatic.min_area > automatic.max_area)
    throw Error("min-area", "at most max-area", str(automatic.min_area, " and ", automatic.max_area));
  return automatic;
}

}  // namespace

SegmentRequest take_segment_request(RequestOptions& options, int64_t max_pixels) {
  SegmentRequest request;
  take_prompt(options, max_pixels, request);
  std::string given;
  const sam::AutomaticOptions automatic = take_automatic(options, given);
  if (options.flag("everything")) {
    if (request.prompt) throw Error("everything", "no prompt beside it", "point, box or mask");
    request.everything = automatic;
  } else if (!given.empty()) {
    throw Error(given, "everything beside it", "none");
  }
  if (!request.prompt && !request.everything) throw Error("request", "point, box, mask or everything", "none of them");
  return request;
}

sam::Prompt resolved_prompt(const SegmentRequest& request, int64_t width, int64_t height, int64_t mask_size) {
  sam::Prompt prompt = *request.prompt;
  if (const auto* logits = std::get_if<Tensor>(&request.mask)) prompt.mask_logits = *logits;
  if (const auto* mask = std::get_if<sam::BinaryMask>(&request.mask))
    prompt.mask_logits = sam::logits_of_image_mask(*mask, width, height, mask_size);
  sam::clip_box(prompt, width, height, "prompt");
  sam::check_prompt(prompt, width, height, mask_size, "prompt");
  return prompt;
}

}  // namespace vitrail::tasks
