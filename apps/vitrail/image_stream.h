// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images through a model: decoded ahead by a few threads, run in batches, delivered in order.
#include <functional>
#include <string>

#include "apps/vitrail/common.h"

namespace vitrail::app {

// Where images come from.
struct ImageSource {
  size_t count = 0;
  std::function<std::string(size_t)> path;
  std::function<image::Image(size_t)> read;  // called from several threads; throws Error
};

// One image's outcome, in the order of the source.
struct Outcome {
  size_t index;
  std::string path, error;  // error empty: all well
  Tensor result;            // of this image alone, without the batch axis; undefined on error
};

// Memory does not grow with the number of images: only a few are in flight.  Returns the number that failed; each
// failure is also a line on standard error.
size_t run_images(const ImageSource& source, const ReadyModel& model, const infer::Request& request, int64_t batch,
                  const GlobalOptions& global, const std::function<void(const Outcome&)>& on_outcome);

// The inputs of a command line as a source.
ImageSource source_of(const std::vector<std::string>& inputs, const ReadyModel& model, bool apply_exif);

}  // namespace vitrail::app
