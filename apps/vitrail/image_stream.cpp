// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/image_stream.h"

#include <cstring>
#include <iostream>

#include "apps/vitrail/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/data/input_paths.h"
#include "vitrail/data/ordered_prefetch.h"
#include "vitrail/image/decode.h"

namespace vitrail::app {
namespace {

// Collects preprocessed images of one shape and runs them as a batch.
class Batcher {
 public:
  Batcher(const LoadedModel& model, const infer::Request& request, int64_t size,
          const std::function<void(const Outcome&)>& on_outcome)
      : model_(model), request_(request), size_(size), on_outcome_(on_outcome) {}

  void add(size_t index, std::string path, const Tensor& image) {
    if (!pending_.empty() && !(image.shape() == images_.front().shape())) flush();
    images_.push_back(image);
    pending_.push_back({index, std::move(path), "", {}});
    if (static_cast<int64_t>(images_.size()) == size_) flush();
  }

  // Delivers pending results first, so that the failure keeps its place in the order.
  void fail(size_t index, const std::string& path, const std::string& message) {
    flush();
    deliver_failure({index, path, with_path(path, message), {}});
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
      const Tensor results = model_.session->run(batch, request_)[0];
      for (size_t i = 0; i < outcomes.size(); ++i) {
        outcomes[i].result = results.select(0, static_cast<int64_t>(i));
        on_outcome_(outcomes[i]);
      }
    } catch (const Error& error) {
      for (Outcome& outcome : outcomes) {
        outcome.error = with_path(outcome.path, error.what());
        deliver_failure(outcome);
      }
    }
  }

  size_t failures() const { return failures_; }

 private:
  void deliver_failure(const Outcome& outcome) {
    ++failures_;
    print_error(outcome.error);
    on_outcome_(outcome);
  }

  const LoadedModel& model_;
  const infer::Request& request_;
  int64_t size_;
  const std::function<void(const Outcome&)>& on_outcome_;
  std::vector<Tensor> images_;
  std::vector<Outcome> pending_;
  size_t failures_ = 0;
};

}  // namespace

size_t run_images(const ImageSource& source, const LoadedModel& model, const infer::Request& request, int64_t batch,
                  const GlobalOptions& global, const std::function<void(const Outcome&)>& on_outcome) {
  const int threads = global.threads > 0 ? global.threads : available_threads();
  Batcher batcher(model, request, batch, on_outcome);
  Progress progress("images", source.count, global.quiet);
  auto preprocess = [&](size_t i) { return image::apply(source.read(i), model.transform); };
  // Two batches in flight: one is decoded while the other runs.
  const data::PrefetchOptions prefetch{.threads = threads, .in_flight = static_cast<size_t>(2 * batch + threads)};
  data::OrderedPrefetch<Tensor> images(source.count, preprocess, prefetch);
  for (size_t i = 0; i < source.count; ++i) {
    try {
      batcher.add(i, source.path(i), *images.next());
    } catch (const Error& error) {
      batcher.fail(i, source.path(i), error.what());
    }
    progress.step();
  }
  batcher.flush();
  return batcher.failures();
}

ImageSource image_source(const std::vector<std::string>& inputs, const LoadedModel& model, bool apply_exif) {
  auto list = std::make_shared<const std::vector<data::InputPath>>(data::expand_input_paths(inputs, std::cin));
  const image::DecodeOptions decode{.mode = model.mode, .apply_exif = apply_exif};
  return {list->size(), [list](size_t i) { return (*list)[i].path; },
          [list, decode](size_t i) {
            const data::InputPath& input = (*list)[i];
            if (!input.error.empty()) throw Error(with_path(input.path, input.error));
            return image::read_image(input.path, decode);
          }};
}

}  // namespace vitrail::app
