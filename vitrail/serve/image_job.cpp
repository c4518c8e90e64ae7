// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/image_job_internal.h"

#include <algorithm>

#include "vitrail/base/digest_internal.h"
#include "vitrail/image/decode_memory.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Judges by the size of the file, or of the image that a small PNG may have.
bool takes_long_to_decode(std::string_view file) {
  constexpr uint64_t kHeavyPixels = uint64_t{4} << 20;
  if (file.size() > kHeavyBytes) return true;
  if (!file.starts_with("\x89PNG") || file.size() < 24) return false;
  const auto big_endian = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(file[i]);
    return value;
  };
  return big_endian(16) * big_endian(20) > kHeavyPixels;
}

// A job that runs.  The tasks of its images share it.
class RunningJob : public std::enable_shared_from_this<RunningJob> {
 public:
  RunningJob(CallPointer call, std::vector<EncodedImage> images, ImageJob job)
      : call_(std::move(call)),
        images_(std::move(images)),
        job_(std::move(job)),
        passes_(job_.request->passes()),
        outcomes_(images_.size()),
        decode_seconds_(images_.size()),
        remaining_(images_.size() * passes_.size()) {
    for (size_t i = 0; i < images_.size(); ++i) {
      outcomes_[i].item.name = images_[i].name;
      outcomes_[i].item.input_files = std::move(images_[i].files);
    }
  }

  void start() {
    if (passes_.empty()) return post(0, &RunningJob::prepare);
    for (size_t i = 0; i < images_.size(); ++i) post(i, &RunningJob::decode);
  }

 private:
  void post(size_t i, void (RunningJob::*action)(size_t)) {
    const auto run = [self = shared_from_this(), i, action] {
      if (!self->call_->departed()) self->guard(i, [&] { ((*self).*action)(i); });
    };
    call_->engine().pool.post(
        {.run = run, .client = call_->client(), .is_heavy = takes_long_to_decode(images_[i].bytes)});
  }

  const std::string& model_name() const { return job_.model->name(); }

  template <class Action>
  void guard(size_t i, Action action) {
    try {
      action();
    } catch (const Departed&) {
      // nobody waits for the response
    } catch (const std::exception& error) {
      fail_image(i, failure_of(error, model_name()));
    }
  }

  void fail_image(size_t i, const Failure& failure) {
    call_->engine().metrics.count_image(model_name(), false);
    outcomes_[i].failure = failure;
    if (passes_.empty()) return next(i);
    finish_passes(passes_.size());
  }

  image::Image decoded(size_t i, std::span<const std::byte> bytes) {
    image::DecodeOptions options = job_.decode;
    options.mode = job_.model->loaded().color_mode();
    image::Image image = image::decode(bytes, options, images_[i].name == "-" ? "image" : images_[i].name);
    outcomes_[i].item.width = image.width;
    outcomes_[i].item.height = image.height;
    return image;
  }

  void end_decoding(size_t i, Clock::time_point begin) {
    decode_seconds_[i] = seconds_since(begin);
    call_->engine().metrics.add_decode(model_name(), decode_seconds_[i]);
  }

  // An image with passes.
  void decode(size_t i) {
    outcomes_[i].item.results.resize(passes_.size());
    const Clock::time_point begin = Clock::now();
    const Tensor input = preprocessed(i);
    end_decoding(i, begin);
    for (size_t p = 0; p < passes_.size(); ++p) {
      call_->engine().batcher.add(
          {.model = job_.model,
           .client = call_->client(),
           .request = passes_[p],
           .input = input,
           .departed = [self = shared_from_this()] { return self->call_->departed(); },
           .done = [self = shared_from_this(), i, p](BatchResult result) { self->take_result(i, p, result); }});
    }
  }

  Tensor preprocessed(size_t i) {
    if (images_[i].input.defined()) return images_[i].input;
    const std::string bytes = std::move(images_[i].bytes);
    const image::DecodeMemoryScope memory;  // also for the image while it is read
    image::Image photo = decoded(i, std::as_bytes(std::span(bytes)));
    Tensor input = job_.model->loaded().input_of(photo);
    if (job_.request->keeps_photo()) outcomes_[i].item.photo = std::move(photo);
    return input;
  }

  void take_result(size_t i, size_t pass, BatchResult& result) {
    const bool succeeded = result.failure.error.empty();
    if (succeeded) call_->engine().metrics.add_queue(model_name(), result.queue_seconds);
    call_->engine().metrics.count_image(model_name(), succeeded);
    call_->add_times(decode_seconds_[i], result.queue_seconds, result.model_seconds);
    outcomes_[i].item.results[pass] = std::move(result.results);
    if (!succeeded) outcomes_[i].failure = std::move(result.failure);
    finish_passes(1);
  }

  // The results of the last image make the response.
  void finish_passes(size_t passes) {
    if ((remaining_ -= passes) == 0) finish();
  }

  // An image without passes: its encoding if it is known, and its pixels if they are needed.
  void prepare(size_t i) {
    const Clock::time_point begin = Clock::now();
    const auto bytes = std::as_bytes(std::span(images_[i].bytes));
    file_ = str(job_.decode.apply_exif ? " exif " : " ", sha256(bytes));
    encoding_ = call_->engine().embeddings.find(key_of(*job_.model));
    const image::DecodeMemoryScope memory;
    tasks::Item& item = outcomes_[i].item;
    if (!encoding_ || job_.render || job_.request->keeps_photo()) item.photo = decoded(i, bytes);
    images_[i].bytes = {};
    end_decoding(i, begin);
    const auto compute = [self = shared_from_this(), i, arrival = Clock::now()] {
      if (!self->call_->departed()) self->guard(i, [&] { self->compute(i, arrival); });
    };
    call_->engine().batcher.run(compute, {.bytes = item.photo.pixels.size(), .is_long = job_.request->is_long()});
  }

  // On the thread that computes.
  void compute(size_t i, Clock::time_point arrival) {
    const Clock::time_point begin = Clock::now();
    const double queue_seconds = std::chrono::duration<double>(begin - arrival).count();
    tasks::Item& item = outcomes_[i].item;
    encoding_ = encoding_by(*job_.model, item, std::move(encoding_));
    if (encoding_) {
      item.width = encoding_->width;
      item.height = encoding_->height;
    }
    item.encode = [&](const tasks::LoadedModel& model) { return encoding_by(served(model), item); };
    job_.request->compute(item, encoding_.get(), [this](int64_t, int64_t) { call_->let_others_run(); });
    item.encode = nullptr;
    require_unchanged_files(*job_.model);
    for (const ModelPointer& other : job_.others) require_unchanged_files(*other);
    const double model_seconds = seconds_since(begin);
    call_->engine().metrics.add_queue(model_name(), queue_seconds);
    call_->engine().metrics.add_batch(model_name(), 1, model_seconds);
    call_->engine().statistics.add_batch(model_name(), 1, model_seconds);
    call_->add_times(decode_seconds_[i], queue_seconds, model_seconds);
    call_->engine().metrics.count_image(model_name(), true);
    next(i);
  }

  std::string key_of(const ServedModel& model) const { return std::to_string(model.number()) + file_; }

  const ServedModel& served(const tasks::LoadedModel& model) const {
    return **std::ranges::find(job_.others, &model, [](const ModelPointer& other) { return &other->loaded(); });
  }

  // What a model encodes of the image, computed unless it is known; null: nothing.
  EncodingPointer encoding_by(const ServedModel& model, const tasks::Item& item, EncodingPointer encoding = nullptr) {
    RecentEmbeddings& recent = call_->engine().embeddings;
    if (!encoding) encoding = recent.find(key_of(model));  // a request that ran meanwhile may have kept it
    const bool known = encoding != nullptr;
    if (!known) encoding = model.loaded().encode(item.photo);
    if (!encoding) return nullptr;
    call_->engine().metrics.count_embedding(model.name(), known);
    if (!known) recent.add(key_of(model), encoding);
    return encoding;
  }

  // The next image without passes, after the last one the response.
  void next(size_t i) {
    encoding_.reset();
    if (!job_.render) outcomes_[i].item.photo = {};
    outcomes_[i].item.input_files = {};
    if (i + 1 < images_.size()) return post(i + 1, &RunningJob::prepare);
    finish();
  }

  // Responds on the pool and before other tasks.
  void finish() {
    const auto respond = [self = shared_from_this()] {
      self->call_->guard([&] {
        const Clock::time_point begin = Clock::now();
        HttpResponse response = self->response();
        self->call_->set_output_seconds(seconds_since(begin));
        self->call_->respond(std::move(response));
      });
    };
    call_->engine().pool.post_urgent(respond);
  }

  HttpResponse response() {
    std::vector<tasks::Item*> items;
    for (ImageOutcome& outcome : outcomes_) {
      if (outcome.failure.error.empty()) items.push_back(&outcome.item);
    }
    job_.request->finish(items);
    return job_.finish(outcomes_);
  }

  CallPointer call_;
  std::vector<EncodedImage> images_;
  ImageJob job_;
  std::vector<infer::Request> passes_;
  std::vector<ImageOutcome> outcomes_;
  std::vector<double> decode_seconds_;
  std::atomic<size_t> remaining_;
  // The image without passes that runs.
  std::string file_;  // its digest, and how it is decoded
  EncodingPointer encoding_;
};

}  // namespace

void start_images(const CallPointer& call, std::vector<EncodedImage> images, ImageJob job) {
  job.decode.max_pixels = call->engine().options.limits.pixels;
  std::make_shared<RunningJob>(call, std::move(images), std::move(job))->start();
}

void require_result(const ImageOutcome& outcome, int status) {
  const Failure& failure = outcome.failure;
  if (!failure.error.empty()) throw HttpError(failure.status == 0 ? status : failure.status, failure.error);
}

HttpResponse list_response(const tasks::Request& request, const std::vector<ImageOutcome>& outcomes, bool single) {
  if (single) require_result(outcomes.front());
  std::string list;
  size_t failures = 0;
  int status = 422;
  for (const ImageOutcome& outcome : outcomes) {
    if (!list.empty()) list += ",";
    try {
      require_result(outcome);
      list += request.json(outcome.item);
    } catch (const Error& error) {
      if (single) throw HttpError(422, error.what());
      list += request.failure_json(outcome.item.name, error.what());
      status = std::max(status, outcome.failure.status);
      ++failures;
    }
  }
  HttpResponse response{.body = single ? list + "\n" : "[" + list + "]\n"};
  if (failures == outcomes.size()) response.status = status;
  return response;
}

}  // namespace vitrail::serve
