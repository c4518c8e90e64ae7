// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/image_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/base/parallel.h"
#include "vitrail/data/loader/ordered_prefetch.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/decode_memory.h"

namespace vitrail::app {
namespace {

// An image that is ready to run.
struct ReadImage {
  tasks::Item item;
  Tensor input = {};  // for passes
  std::optional<FrameNumber> frame = {};

  size_t bytes() const { return item.photo.pixels.size() + static_cast<size_t>(input.numel()) * sizeof(float); }
};

// Images that are decoded ahead, and those of the batch, each hold at most this share of the memory for decoding, and
// one image more.
size_t waiting_bytes() { return static_cast<size_t>(image::decode_memory() / 4); }

// Collects images with inputs of one shape and runs them as a batch: a smaller one if they hold much memory.
class Batcher {
 public:
  Batcher(const ImageRun& run, int64_t size, const std::function<void(Outcome&)>& on_outcome)
      : run_(run), size_(size), on_outcome_(on_outcome) {}

  void add(size_t index, ReadImage image) {
    if (!pending_.empty() && !(image.input.shape() == inputs_.front().shape())) flush();
    pending_bytes_ += image.bytes();
    inputs_.push_back(std::move(image.input));
    pending_.push_back({.index = index, .item = std::move(image.item), .frame = image.frame});
    if (static_cast<int64_t>(inputs_.size()) == size_ || pending_bytes_ >= waiting_bytes()) flush();
  }

  // Delivers pending results first, so that the failure keeps its place in the order.
  void fail(size_t index, const std::string& path, const std::string& message,
            const std::optional<FrameNumber>& frame = {}) {
    flush();
    check_mapped_files();  // the image may be part of an archive that was cut short
    Outcome outcome{.index = index, .item = {.name = path}, .ends_batch = true, .frame = frame};
    outcome.error = outcome.message(message);
    deliver(outcome);
    flush_output();
  }

  void flush() {
    if (pending_.empty()) return;
    pending_bytes_ = 0;
    std::vector<Outcome> outcomes = std::exchange(pending_, {});
    std::vector<Tensor> inputs = std::exchange(inputs_, {});
    try {
      run_.passes.empty() ? run_.compute(outcomes.front().item) : run_passes(std::move(inputs), outcomes);
      check_mapped_files();
    } catch (const Error& error) {
      check_mapped_files();
      for (Outcome& outcome : outcomes) outcome.error = outcome.message(error.what());
    }
    outcomes.back().ends_batch = true;
    for (Outcome& outcome : outcomes) deliver(outcome);
    flush_output();
  }

  size_t failures() const { return failures_; }

 private:
  void run_passes(std::vector<Tensor> inputs, std::vector<Outcome>& outcomes) const {
    const Shape shape = inputs.front().shape();
    const auto count = static_cast<int64_t>(inputs.size());
    const Tensor batch = Tensor::empty({count, shape[0], shape[1], shape[2]});
    for (int64_t i = 0; i < count; ++i) batch.select(0, i).copy_(inputs[static_cast<size_t>(i)]);
    inputs.clear();
    for (const infer::Request& pass : run_.passes) {
      const std::vector<Tensor> results = run_.run(batch, pass);
      for (int64_t i = 0; i < count; ++i) {
        std::vector<Tensor>& rows = outcomes[static_cast<size_t>(i)].item.results.emplace_back();
        for (const Tensor& result : results) rows.push_back(result.select(0, i));
      }
    }
  }

  void deliver(Outcome& outcome) {
    if (!outcome.error.empty()) {
      ++failures_;
      print_error(outcome.error);
    }
    on_outcome_(outcome);
  }

  const ImageRun& run_;
  int64_t size_;
  const std::function<void(Outcome&)>& on_outcome_;
  std::vector<Tensor> inputs_;
  std::vector<Outcome> pending_;
  size_t pending_bytes_ = 0;
  size_t failures_ = 0;
};

ReadImage prepared(const std::string& name, image::Image photo, const ImageRun& run) {
  ReadImage image{.item = {.name = name, .width = photo.width, .height = photo.height}};
  if (!run.passes.empty()) image.input = run.input_of(photo);
  if (run.passes.empty() || run.keeps_photo) image.item.photo = std::move(photo);
  return image;
}

std::optional<ReadImage> read_image(const ImageSource& source, const ImageRun& run, size_t i) {
  const std::optional<std::string> path = source.path(i);
  if (!path) return std::nullopt;
  const image::DecodeMemoryScope memory;
  return prepared(*path, source.read(i), run);
}

size_t run_frames(FrameStream& frames, const ImageRun& run, const GlobalOptions& global,
                  const std::function<void(Outcome&)>& on_outcome) {
  Batcher batcher(run, 1, on_outcome);
  Progress progress("frames", std::nullopt, global.quiet);
  size_t i = 0;
  for (std::optional<Frame> frame; (frame = frames.next()); ++i) {
    const std::string name = str(frame->place.number);
    std::optional<ReadImage> image;
    std::string failure;
    try {
      const image::DecodeMemoryScope memory;
      image = prepared(name, frames.image_of(*frame), run);
      image->frame = frame->place;
    } catch (const Error& error) {
      failure = error.what();
    }
    image ? batcher.add(i, std::move(*image)) : batcher.fail(i, name, failure, frame->place);
    progress.step();
  }
  if (i == 0) warn("no frames");
  return batcher.failures();
}

}  // namespace

std::string Outcome::message(const std::string& text) const {
  return (frame ? "frame " : "") + with_path(path(), text);
}

nlohmann::ordered_json Outcome::numbered(nlohmann::ordered_json result) const {
  if (!frame) return result;
  nlohmann::ordered_json object{{"frame", frame->number}};
  if (frame->dropped) object["dropped"] = *frame->dropped;
  for (const char* name : {"path", "image"}) result.erase(name);
  object.update(result);
  return object;
}

size_t run_images(const ImageSource& source, const ImageRun& run, int64_t batch, const GlobalOptions& global,
                  const std::function<void(Outcome&)>& on_outcome) {
  constexpr std::chrono::milliseconds kPatience{20};
  if (source.frames) return run_frames(*source.frames, run, global, on_outcome);
  if (run.passes.empty()) batch = 1;
  Batcher batcher(run, batch, on_outcome);
  Progress progress("images", source.count, global.quiet);
  // Two batches in flight: one is decoded while the other runs.
  const int threads = num_threads();
  const data::PrefetchOptions prefetch{
      .threads = threads, .in_flight = static_cast<size_t>(2 * batch + threads), .max_bytes = waiting_bytes()};
  data::OrderedPrefetch<std::optional<ReadImage>> images(
      source.count.value_or(SIZE_MAX), [&](size_t i) { return read_image(source, run, i); }, prefetch,
      [](const std::optional<ReadImage>& image) { return image ? image->bytes() : 0; });
  size_t i = 0;
  for (;; ++i) {
    while (source.waiting && !images.ready_within(kPatience)) {
      if (source.waiting()) batcher.flush();
    }
    std::optional<ReadImage> image;
    std::string error;
    try {
      auto next = images.next();
      if (!next || !*next) break;
      image = std::move(**next);
    } catch (const Error& failure) {
      error = failure.what();
    }
    if (image) {
      batcher.add(i, std::move(*image));
    } else {
      batcher.fail(i, *source.path(i), error);
    }
    progress.step();
  }
  batcher.flush();
  if (i == 0) warn("no images");
  return batcher.failures();
}

size_t run_images(const ImageSource& source, const Model& model, const infer::Request& request, int64_t batch,
                  const GlobalOptions& global, const std::function<void(Outcome&)>& on_outcome) {
  // The first batch's program is compiled: what the model does not have, such as a block or a class token, is one error
  // instead of one for each image.
  if (source.count != 0) {
    const auto& vit = model.config().vit;
    const int64_t first = std::min(batch, static_cast<int64_t>(source.count.value_or(1)));
    model.session().images_per_pass({first, vit.in_chans, vit.img_size[0], vit.img_size[1]}, request);
  }
  const ImageRun run{
      .passes = {request},
      .input_of = [&](const image::Image& photo) { return image::apply(photo, model.transform()); },
      .run = [&](const Tensor& inputs, const infer::Request& pass) { return model.session().run(inputs, pass); }};
  return run_images(source, run, batch, global, on_outcome);
}

CLI::Option* StreamOptions::add_inputs_to(CLI::App& command) {
  return command.add_option("INPUT", inputs, "Images, folders, or - for paths or an image on standard input");
}

void StreamOptions::add_to(CLI::App& command) {
  add_field_options(command, [this](Fields& f) {
    f.integer({"batch", "Batch size"}, batch, 1, 1024);
    f.boolean({"exif", "Apply the EXIF orientation"}, exif);
  });
}

ImageSource image_source(const StreamOptions& options, image::ColorMode mode, const OnBytes& on_bytes) {
  const image::DecodeOptions decode{.mode = mode, .apply_exif = options.exif};
  if (options.frames.given()) return {.frames = std::make_shared<FrameStream>(options.frames, decode)};
  const auto list = std::make_shared<ImageInputs>(options.inputs);
  return {.count = list->count(),
          .path =
              [list](size_t i) {
                const auto input = list->at(i);
                return input ? std::optional(input->path) : std::nullopt;
              },
          .read = [list, decode, on_bytes](size_t i) { return list->read(i, decode, on_bytes); },
          .waiting = list->count() ? std::function<bool()>() : [list] { return list->waiting(); }};
}

}  // namespace vitrail::app
