// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/segment_job_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/image/decode_memory.h"
#include "vitrail/sam/embedding_cache.h"

namespace vitrail::serve {
namespace {

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A job that runs.  The tasks of its images share it.
class RunningSegments : public std::enable_shared_from_this<RunningSegments> {
 public:
  RunningSegments(CallPointer call, std::vector<EncodedImage> images, SegmentJob job)
      : call_(std::move(call)), images_(std::move(images)), job_(std::move(job)), outcomes_(images_.size()) {}

  void start(size_t i) {
    call_->engine().pool.post([self = shared_from_this(), i] { self->prepare(i); });
  }

 private:
  const sam::Predictor& predictor() const { return *job_.model->segmenter(); }
  ImageOutcome& outcome() { return outcomes_[current_]; }

  // On the pool: the image's embedding if it is known, and its pixels if they are needed.
  void prepare(size_t i) {
    if (call_->departed()) return;
    current_ = i;
    outcome().name = images_[i].name;
    guard([&] {
      const Clock::time_point begin = Clock::now();
      const auto bytes = std::as_bytes(std::span(images_[i].bytes));
      key_ = str(job_.model->number(), " ", sam::embedding_key(bytes, job_.decode.apply_exif));
      embedding_ = call_->engine().embeddings.find(key_);
      if (!embedding_ || job_.keep_images || job_.request.everything) {
        const image::DecodeMemoryScope memory;
        photo_ = image::decode(bytes, job_.decode, images_[i].name);
      }
      images_[i].bytes = {};
      decode_seconds_ = seconds_since(begin);
      call_->engine().metrics.add_decode(decode_seconds_);
      arrival_ = Clock::now();
      call_->engine().batcher.run([self = shared_from_this()] { self->compute(); },
                                  {.bytes = photo_.pixels.size(), .is_long = job_.request.everything.has_value()});
    });
  }

  // On the thread that computes.
  void compute() {
    if (call_->departed()) return;
    guard([&] {
      const Clock::time_point begin = Clock::now();
      const double queue_seconds = std::chrono::duration<double>(begin - arrival_).count();
      embed();
      if (job_.request.prompt) run_prompt();
      if (job_.request.everything) run_everything();
      require_unchanged_files(*job_.model);
      const double model_seconds = seconds_since(begin);
      call_->engine().metrics.add_queue(queue_seconds);
      call_->engine().metrics.add_batch(1, model_seconds);
      call_->engine().statistics.add_batch(job_.model->name(), 1, model_seconds);
      call_->add_times(decode_seconds_, queue_seconds, model_seconds);
      if (job_.keep_images) outcome().image = std::move(photo_);
      next();
    });
  }

  void embed() {
    if (!embedding_)
      embedding_ = call_->engine().embeddings.find(key_);  // a request that ran meanwhile may have kept it
    call_->engine().metrics.count_embedding(embedding_.has_value());
    if (!embedding_) {
      embedding_ = predictor().embed(photo_);
      call_->engine().embeddings.add(key_, *embedding_);
    }
    outcome().width = embedding_->width;
    outcome().height = embedding_->height;
    if (!job_.request.prompt && !job_.request.everything) outcome().results = {{embedding_->values}};
  }

  void run_prompt() {
    const sam::Prompt prompt =
        resolved_prompt(job_.request, embedding_->width, embedding_->height, predictor().mask_size());
    const sam::Masks masks = predictor().predict(*embedding_, prompt);
    outcome().masks = masks_of(predictor(), masks, prompt, embedding_->width, embedding_->height);
  }

  void run_everything() {
    sam::AutomaticOptions automatic = *job_.request.everything;
    automatic.progress = [this](int64_t, int64_t) { call_->let_others_run(); };
    for (const sam::AutomaticMask& mask : sam::automatic_masks(predictor(), *embedding_, photo_, automatic))
      outcome().masks.push_back(mask_of(mask));
  }

  template <class Action>
  void guard(Action action) {
    try {
      action();
    } catch (const Departed&) {
      // nobody waits for the response
    } catch (const std::exception& error) {
      fail_image(failure_of(error, job_.model->name()));
    }
  }

  void fail_image(const Failure& failure) {
    outcome().failure = failure;
    outcome().masks.clear();
    next();
  }

  // The next image, after the last one the response.
  void next() {
    call_->engine().metrics.count_image(outcome().failure.error.empty());
    photo_ = {};
    embedding_.reset();
    if (current_ + 1 < images_.size()) return start(current_ + 1);
    finish_job(call_, [self = shared_from_this()] { return self->job_.finish(self->outcomes_); });
  }

  CallPointer call_;
  std::vector<EncodedImage> images_;
  SegmentJob job_;
  std::vector<ImageOutcome> outcomes_;
  // The current image.
  size_t current_ = 0;
  std::string key_;
  image::Image photo_;
  std::optional<sam::ImageEmbedding> embedding_;
  Clock::time_point arrival_;
  double decode_seconds_ = 0;
};

}  // namespace

void start_segments(const CallPointer& call, std::vector<EncodedImage> images, SegmentJob job) {
  call->set_model(job.model->name());
  job.decode.max_pixels = call->engine().options.limits.pixels;
  std::make_shared<RunningSegments>(call, std::move(images), std::move(job))->start(0);
}

}  // namespace vitrail::serve
