// SPDX-License-Identifier: Apache-2.0
// POST /v1/segment: the masks of a prompt or of everything, as `vitrail segment --format json`, or over the image.
#include "vitrail/serve/png_response_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/segment_job_internal.h"

namespace vitrail::serve {
namespace {

using nlohmann::ordered_json;

ordered_json segment_json(const ImageOutcome& outcome, bool everything) {
  return everything ? sam::everything_json(outcome.name, outcome.masks)
                    : sam::prompt_json(outcome.name, 0, outcome.masks);
}

ordered_json segment_failure(const std::string& name, const std::string& error, bool everything) {
  if (everything) return {{"image", name}, {"error", error}};
  return {{"image", name}, {"prompt", 0}, {"error", error}};
}

}  // namespace

void segment_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  const Limits& limits = call->engine().options.limits;
  RequestImages input = take_images(call->request(), limits, options);
  SegmentJob job{.model = call->take_model(ModelKind::segmenter),
                 .request = take_segment_request(options, limits.pixels),
                 .decode = {.apply_exif = options.flag("exif")}};
  double opacity = 0.5;
  options.number("opacity", opacity, {0, 1});
  const bool png = wants_png(*call, input.single), everything = job.request.everything.has_value();
  options.require_all_taken();
  job.keep_images = png;
  job.finish = [png, opacity, everything, single = input.single](std::vector<ImageOutcome>& outcomes) {
    if (png) {
      const ImageOutcome& outcome = outcomes.front();
      require_result(outcome);
      return png_response(sam::best_masks_overlay(outcome.image, outcome.masks, opacity));
    }
    return outcome_response(
        outcomes, single, [&](const ImageOutcome& outcome) { return segment_json(outcome, everything); },
        [&](const std::string& name, const std::string& error) { return segment_failure(name, error, everything); });
  };
  start_segments(call, std::move(input.images), std::move(job));
}

}  // namespace vitrail::serve
