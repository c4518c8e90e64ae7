// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/image_stream.h"

#include <algorithm>
#include <chrono>

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/data/loader/ordered_prefetch.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/decode_memory.h"

namespace vitrail::app {
namespace {

// Collects preprocessed images of one shape and runs them as a batch.
class Batcher {
 public:
  Batcher(const Model& model, const infer::Request& request, int64_t size,
          const std::function<void(const Outcome&)>& on_outcome)
      : model_(model), request_(request), size_(size), on_outcome_(on_outcome) {}

  void add(size_t index, std::string path, const Tensor& image) {
    if (!pending_.empty() && !(image.shape() == images_.front().shape())) flush();
    images_.push_back(image);
    pending_.push_back({.index = index, .path = std::move(path), .error = {}, .result = {}});
    if (static_cast<int64_t>(images_.size()) == size_) flush();
  }

  // Delivers pending results first, so that the failure keeps its place in the order.
  void fail(size_t index, const std::string& path, const std::string& message) {
    flush();
    check_mapped_files();  // the image may be part of an archive that was cut short
    deliver_failure(
        {.index = index, .path = path, .error = with_path(path, message), .result = {}, .ends_batch = true});
    flush_output();
  }

  void flush() {
    if (images_.empty()) return;
    const Tensor& first = images_.front();
    const auto count = static_cast<int64_t>(images_.size());
    const Tensor batch = Tensor::empty({count, first.size(0), first.size(1), first.size(2)});
    for (int64_t i = 0; i < count; ++i) batch.select(0, i).copy_(images_[static_cast<size_t>(i)]);
    images_.clear();
    std::vector<Outcome> outcomes = std::move(pending_);
    pending_.clear();
    try {
      const Tensor results = model_.session().run(batch, request_)[0];
      check_mapped_files();
      for (size_t i = 0; i < outcomes.size(); ++i) outcomes[i].result = results.select(0, static_cast<int64_t>(i));
    } catch (const Error& error) {
      check_mapped_files();
      for (Outcome& outcome : outcomes) outcome.error = with_path(outcome.path, error.what());
    }
    outcomes.back().ends_batch = true;
    for (const Outcome& outcome : outcomes) outcome.error.empty() ? on_outcome_(outcome) : deliver_failure(outcome);
    flush_output();
  }

  size_t failures() const { return failures_; }

 private:
  void deliver_failure(const Outcome& outcome) {
    ++failures_;
    print_error(outcome.error);
    on_outcome_(outcome);
  }

  const Model& model_;
  const infer::Request& request_;
  int64_t size_;
  const std::function<void(const Outcome&)>& on_outcome_;
  std::vector<Tensor> images_;
  std::vector<Outcome> pending_;
  size_t failures_ = 0;
};

// Compiles the first batch's program: what the model does not have, such as a block or a class token, is one error
// instead of one for each image.
void check_request(const Model& model, const infer::Request& request, int64_t batch) {
  const auto& vit = model.config().vit;
  model.session().images_per_pass({batch, vit.in_chans, vit.img_size[0], vit.img_size[1]}, request);
}

}  // namespace

size_t run_images(const ImageSource& source, const Model& model, const infer::Request& request, int64_t batch,
                  const GlobalOptions& global, const std::function<void(const Outcome&)>& on_outcome) {
  constexpr std::chrono::milliseconds kPatience{20};
  const int threads = model.session().threads();
  if (source.count != 0) check_request(model, request, std::min(batch, static_cast<int64_t>(source.count.value_or(1))));
  Batcher batcher(model, request, batch, on_outcome);
  Progress progress("images", source.count, global.quiet);
  auto preprocess = [&](size_t i) -> std::optional<Tensor> {
    if (!source.path(i)) return std::nullopt;
    const image::DecodeMemoryScope memory;
    return image::apply(source.read(i), model.transform());
  };
  // Two batches in flight: one is decoded while the other runs.
  const data::PrefetchOptions prefetch{.threads = threads, .in_flight = static_cast<size_t>(2 * batch + threads)};
  data::OrderedPrefetch<std::optional<Tensor>> images(source.count.value_or(SIZE_MAX), preprocess, prefetch);
  size_t i = 0;
  for (;; ++i) {
    while (source.waiting && !images.ready_within(kPatience)) {
      if (source.waiting()) batcher.flush();
    }
    std::optional<Tensor> image;
    std::string error;
    try {
      auto next = images.next();
      if (!next || !*next) break;
      image = std::move(**next);
    } catch (const Error& failure) {
      error = failure.what();
    }
    if (image) {
      batcher.add(i, *source.path(i), *image);
    } else {
      batcher.fail(i, *source.path(i), error);
    }
    progress.step();
  }
  batcher.flush();
  if (i == 0) warn("no images");
  return batcher.failures();
}

CLI::Option* StreamOptions::add_inputs_to(CLI::App& command) {
  return command.add_option("INPUT", inputs, "Images, folders, or - for paths or an image on standard input");
}

void StreamOptions::add_to(CLI::App& command) {
  command.add_option("--batch", batch, "Batch size")->capture_default_str()->check(CLI::Range(1, 1024));
  command.add_flag("--exif", exif, "Apply the EXIF orientation");
}

ImageSource image_source(const StreamOptions& options, const Model& model, const OnBytes& on_bytes) {
  const auto list = std::make_shared<ImageInputs>(options.inputs);
  const image::DecodeOptions decode{.mode = model.color_mode(), .apply_exif = options.exif};
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
