// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/image_job_internal.h"

#include <algorithm>

#include "vitrail/image/decode_memory.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

// A job that runs.  The tasks of its images share it.
class RunningJob : public std::enable_shared_from_this<RunningJob> {
 public:
  RunningJob(CallPointer call, std::vector<EncodedImage> images, ImageJob job)
      : call_(std::move(call)),
        images_(std::move(images)),
        job_(std::move(job)),
        outcomes_(images_.size()),
        decode_seconds_(images_.size()),
        remaining_(images_.size() * job_.requests.size()) {}

  void start() {
    for (size_t i = 0; i < images_.size(); ++i)
      call_->engine().pool.post([self = shared_from_this(), i] { self->decode(i); });
  }

 private:
  void decode(size_t i) {
    if (call_->departed()) return;
    outcomes_[i].name = images_[i].name;
    outcomes_[i].results.resize(job_.requests.size());
    try {
      const Clock::time_point begin = Clock::now();
      const Tensor input = preprocessed(i);
      decode_seconds_[i] = std::chrono::duration<double>(Clock::now() - begin).count();
      call_->engine().metrics.add_decode(decode_seconds_[i]);
      for (size_t r = 0; r < job_.requests.size(); ++r) add_to_batch(i, r, input);
    } catch (const std::exception& error) {
      fail_image(i, failure_of(error, job_.model->name()));
    }
  }

  void add_to_batch(size_t i, size_t r, const Tensor& input) {
    call_->engine().batcher.add(
        {.model = job_.model,
         .request = job_.requests[r],
         .input = input,
         .departed = [self = shared_from_this()] { return self->call_->departed(); },
         .done = [self = shared_from_this(), i, r](BatchResult result) { self->take_result(i, r, result); }});
  }

  Tensor preprocessed(size_t i) {
    if (images_[i].input.defined()) return images_[i].input;
    const image::DecodeMemoryScope memory;
    const Model& model = job_.model->images();
    image::DecodeOptions options = job_.decode;
    options.mode = model.color_mode();
    std::string bytes = std::move(images_[i].bytes);
    image::Image image = image::decode(std::as_bytes(std::span(bytes)), options, images_[i].name);
    outcomes_[i].width = image.width;
    outcomes_[i].height = image.height;
    Tensor input = image::apply(image, model.transform());
    if (job_.keep_images) outcomes_[i].image = std::move(image);
    return input;
  }

  void take_result(size_t i, size_t r, BatchResult& result) {
    const bool succeeded = result.failure.error.empty();
    if (succeeded) call_->engine().metrics.add_queue(result.queue_seconds);
    call_->engine().metrics.count_image(succeeded);
    call_->add_times(decode_seconds_[i], result.queue_seconds, result.model_seconds);
    outcomes_[i].results[r] = std::move(result.results);
    if (!succeeded) outcomes_[i].failure = std::move(result.failure);
    finish(1);
  }

  void fail_image(size_t i, const Failure& failure) {
    call_->engine().metrics.count_image(false);
    outcomes_[i].failure = failure;
    finish(job_.requests.size());
  }

  // The results of the last image make the response.
  void finish(size_t results) {
    if ((remaining_ -= results) > 0) return;
    finish_job(call_, [self = shared_from_this()] { return self->job_.finish(self->outcomes_); });
  }

  CallPointer call_;
  std::vector<EncodedImage> images_;
  ImageJob job_;
  std::vector<ImageOutcome> outcomes_;
  std::vector<double> decode_seconds_;
  std::atomic<size_t> remaining_;
};

}  // namespace

void start_images(const CallPointer& call, std::vector<EncodedImage> images, ImageJob job) {
  call->set_model(job.model->name());
  job.decode.max_pixels = call->engine().options.limits.pixels;
  std::make_shared<RunningJob>(call, std::move(images), std::move(job))->start();
}

void finish_job(const CallPointer& call, std::function<HttpResponse()> finish) {
  const auto respond = [call, finish = std::move(finish)] {
    call->guard([&] {
      const Clock::time_point begin = Clock::now();
      HttpResponse response = finish();
      call->set_output_seconds(std::chrono::duration<double>(Clock::now() - begin).count());
      call->respond(std::move(response));
    });
  };
  call->engine().pool.post(respond, true);
}

void require_result(const ImageOutcome& outcome, int status) {
  const Failure& failure = outcome.failure;
  if (!failure.error.empty()) throw HttpError(failure.status == 0 ? status : failure.status, failure.error);
}

HttpResponse outcome_response(
    std::vector<ImageOutcome>& outcomes, bool single,
    const std::function<nlohmann::ordered_json(const ImageOutcome&)>& object_of,
    const std::function<nlohmann::ordered_json(const std::string& name, const std::string& error)>& failure_of) {
  if (single) require_result(outcomes.front());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  size_t failures = 0;
  int status = 422;
  for (ImageOutcome& outcome : outcomes) {
    try {
      require_result(outcome);
      list.push_back(object_of(outcome));
    } catch (const Error& error) {
      if (single) throw HttpError(422, error.what());
      list.push_back(failure_of(outcome.name, error.what()));
      status = std::max(status, outcome.failure.status);
      ++failures;
    }
  }
  HttpResponse response = json_response(single ? list.front() : list);
  if (failures == outcomes.size()) response.status = status;
  return response;
}

}  // namespace vitrail::serve
