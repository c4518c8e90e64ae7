// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images of a request, encoded: the body itself, the files of a form, or data URIs in JSON.
#include <string>
#include <vector>

#include "vitrail/serve/http_internal.h"
#include "vitrail/serve/json_body_internal.h"
#include "vitrail/serve/target_internal.h"
#include "vitrail/tasks/task.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::serve {

struct EncodedImage {
  std::string name;   // as the command line's path: "-", or the name of the file
  std::string bytes;  // the content of an image file
  Tensor input = {};  // instead: what preprocessing gives, [C, H, W]
  tasks::FilesOfItem files = {};
};

struct RequestImages {
  std::vector<EncodedImage> images = {};
  bool single = false;  // the body is the image: the response is an object, else it is a list
};

// Takes the images out of the body by its Content-Type; fields of a form and members of a JSON object are added to the
// options.  Throws HttpError: 400 for a malformed body, 413 for too many images, 415 for a type that has no image.
RequestImages take_images(HttpRequest& request, const Limits& limits, RequestOptions& options,
                          const ParseBudget& budget = {});

// Replaces a body with Content-Encoding gzip or deflate, and returns whether it had one.  Throws HttpError: 400 for
// damaged data, 413 above the limit, 415 for another encoding.
bool decompress_body(HttpRequest& request, const Limits& limits);

// The type in a Content-Type header, in lower case and without parameters.
std::string media_type(std::string_view content_type);

}  // namespace vitrail::serve
