// SPDX-License-Identifier: Apache-2.0
#pragma once
// From encoded images to the masks of Segment Anything: decoding on the pool, the model where all models compute.
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/segment_request_internal.h"

namespace vitrail::serve {

struct SegmentJob {
  ModelPointer model;
  SegmentRequest request = {};  // neither prompt nor everything: the embedding is the outcome's only result
  image::DecodeOptions decode = {};
  bool keep_images = false;
  // The response, from the outcomes in the order of the images.  May throw.
  std::function<HttpResponse(std::vector<ImageOutcome>& outcomes)> finish = {};
};

// Starts the job and returns; the call gets its response later.  The images of a call run one after another, so that
// one of them is decoded in memory.
void start_segments(const CallPointer& call, std::vector<EncodedImage> images, SegmentJob job);

}  // namespace vitrail::serve
