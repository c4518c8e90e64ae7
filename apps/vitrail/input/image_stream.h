// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a model over a stream of images: threads decode ahead, images run in batches, results arrive in input order.
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/vitrail/input/frame_stream.h"
#include "apps/vitrail/input/image_inputs.h"
#include "apps/vitrail/shell/common.h"
#include "vitrail/tasks/task.h"

namespace vitrail::app {

// A sequence of images.
struct ImageSource {
  std::optional<size_t> count = {};                             // none: unknown, path() tells the end
  std::function<std::optional<std::string>(size_t)> path = {};  // none after the last image; may wait for it
  std::function<image::Image(size_t)> read = {};                // called from several threads; throws Error
  std::function<bool()> waiting = {};                           // whether path() waits for another program
  std::shared_ptr<FrameStream> frames = {};                     // instead of all the others
};

// What runs on each image.
struct ImageRun {
  std::vector<infer::Request> passes = {};                   // in batches; none: compute() on one image at a time
  std::function<Tensor(const image::Image&)> input_of = {};  // called from several threads
  std::function<std::vector<Tensor>(const Tensor& inputs, const infer::Request& pass)> run = {};
  std::function<void(tasks::Item&)> compute = {};
  bool keeps_photo = false;  // items of passes have their photo
};

// The result for one image.
struct Outcome {
  size_t index;
  tasks::Item item;                       // without results on error
  std::string error = {};                 // empty: success
  bool ends_batch = false;                // the next outcome may take long
  std::optional<FrameNumber> frame = {};  // place in a stream

  const std::string& path() const { return item.name; }                   // frames have their number
  std::string title() const { return (frame ? "frame " : "") + path(); }  // as text and messages name it
  std::string message(const std::string& text) const;                     // with the title in front
  // A result with the frame's number instead of the path of the image, and how many frames were dropped.
  nlohmann::ordered_json numbered(nlohmann::ordered_json result) const;
  const Tensor& result() const { return item.results[0][0]; }  // for one pass
};

// Runs images and calls on_outcome in source order.  A bounded number of images is in memory.  Failed
// images are also reported on standard error.  Standard output is flushed after each batch, and a batch does not wait
// for images that another program has yet to name.  Frames run one by one, each when it arrives.  Returns how many
// failed.  Throws Error if a mapped file of weights or images has changed, and what on_outcome throws.
size_t run_images(const ImageSource& source, const ImageRun& run, int64_t batch, const GlobalOptions& global,
                  const std::function<void(Outcome&)>& on_outcome);

// The same for one pass of a model.  Throws Error also for a request that does not fit the model.
size_t run_images(const ImageSource& source, const Model& model, const infer::Request& request, int64_t batch,
                  const GlobalOptions& global, const std::function<void(Outcome&)>& on_outcome);

// The options of commands that run a model over a stream of images.
struct StreamOptions {
  std::vector<std::string> inputs{};
  int64_t batch = 8;
  bool exif = false;
  FrameOptions frames{};

  CLI::Option* add_inputs_to(CLI::App& command);  // INPUT
  void add_to(CLI::App& command);                 // --batch, --exif
};

// The images that the inputs name.  on_bytes is called from several threads.
ImageSource image_source(const StreamOptions& options, image::ColorMode mode, const OnBytes& on_bytes = {});

}  // namespace vitrail::app
