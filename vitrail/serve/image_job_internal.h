// SPDX-License-Identifier: Apache-2.0
#pragma once
// From encoded images to the results of a task: decoding on the pool, the model where all models compute, then the
// response.
#include "vitrail/serve/call_internal.h"
#include "vitrail/serve/request_images_internal.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::serve {

struct ImageOutcome {
  tasks::Item item = {};
  Failure failure = {};  // with an error, the item has a name alone
};

struct ImageJob {
  ModelPointer model;
  std::vector<ModelPointer> others = {};    // further models, of requests without passes
  std::shared_ptr<tasks::Request> request;  // what is computed of each image
  image::DecodeOptions decode = {};
  bool render = false;  // the only image is kept for it
  // The response, from the outcomes in the order of the images.  May throw.
  std::function<HttpResponse(std::vector<ImageOutcome>& outcomes)> finish = {};
};

// Starts the job and returns; the call gets its response later.  Images of a request with passes run in batches with
// those of other calls.  Without passes they run one after another, so that one of them is decoded in memory.
void start_images(const CallPointer& call, std::vector<EncodedImage> images, ImageJob job);

// Throws HttpError if the image failed, with `status` if the image is at fault.
void require_result(const ImageOutcome& outcome, int status = 422);

// The response of the routes for tasks: an object for a single image, else a list with an object for each.  Throws as
// require_result() if the single image failed; if all of a list did, the status is 422, or that of a fault of the
// server.
HttpResponse list_response(const tasks::Request& request, const std::vector<ImageOutcome>& outcomes, bool single);

}  // namespace vitrail::serve
