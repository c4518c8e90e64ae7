// SPDX-License-Identifier: Apache-2.0
#pragma once
// From encoded images to the results of a model: decoding on the pool, batches over clients, then the response.
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/segment_masks_internal.h"
#include "vitrail/serve/call_internal.h"
#include "vitrail/serve/request_images_internal.h"

namespace vitrail::serve {

struct ImageOutcome {
  std::string name;
  Failure failure;                           // with an error there is nothing else
  std::vector<std::vector<Tensor>> results;  // results of each request of the job, without the batch axis
  image::Image image;                        // if the job keeps images
  int64_t width = 0, height = 0;             // the size of the image
  std::vector<sam::SegmentMask> masks;       // from a model of Segment Anything
};

struct ImageJob {
  ModelPointer model;
  std::vector<infer::Request> requests{infer::Request{}};  // what is computed of each image
  image::DecodeOptions decode = {};
  bool keep_images = false;
  // The response, from the outcomes in the order of the images.  May throw.
  std::function<HttpResponse(std::vector<ImageOutcome>& outcomes)> finish = {};
};

// Starts the job and returns; the call gets its response later.
void start_images(const CallPointer& call, std::vector<EncodedImage> images, ImageJob job);

// Responds with what finish() gives, on the pool and before other tasks.
void finish_job(const CallPointer& call, std::function<HttpResponse()> finish);

// Throws HttpError if the image failed, with `status` if the image is at fault.
void require_result(const ImageOutcome& outcome, int status = 422);

// The response of the routes for images: an object for a single image, else a list with an object for each.  An image
// that failed is {"path", "error"} in the list.  Throws as require_result() if the single image failed; if all did, the
// status is 422, or that of a fault of the server.
HttpResponse outcome_response(
    std::vector<ImageOutcome>& outcomes, bool single,
    const std::function<nlohmann::ordered_json(const ImageOutcome&)>& object_of,
    const std::function<nlohmann::ordered_json(const std::string& name, const std::string& error)>& failure_of =
        pipeline::failure_json);

}  // namespace vitrail::serve
