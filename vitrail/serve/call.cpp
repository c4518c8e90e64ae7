// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/call_internal.h"

#include <algorithm>
#include <cstdio>

#include "vitrail/base/callbacks.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/serve/failure_internal.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/request_images_internal.h"

namespace vitrail::serve {
namespace {

using nlohmann::ordered_json;

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds * 1e3);
  return text;
}

const char* openai_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

HttpResponse json_response(const ordered_json& value) { return {.body = pipeline::json_line(value) + "\n"}; }

HttpResponse error_response(const std::string& route, int status, const std::string& message) {
  ordered_json error = message;
  const bool of_openai = route == "embeddings" || route == "models" || route == "model" || route == kOpenAiRoute;
  if (of_openai) error = {{"message", message}, {"type", openai_type(status)}, {"code", status}};
  HttpResponse response = json_response({{"error", error}});
  response.status = status;
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Call::Call(Engine& engine, std::string route, HttpRequest request, std::shared_ptr<HttpExchange> exchange)
    : engine_(engine),
      route_(std::move(route)),
      request_(std::move(request)),
      exchange_(std::move(exchange)),
      entry_(log_entry_of(request_, route_)) {
  entry_.request_bytes = request_.body.size();
}

Call::~Call() {
  if (responded_) return;
  respond(error_response(route_, 500, "internal error"));
}

void Call::decompress() {
  if (decompress_body(request_, engine_.options.limits)) reserve(request_.body.size());
}

ModelPointer Call::find_model(const std::optional<std::string>& name, const std::string& task) {
  ModelPointer model = engine_.models.find(name, task);
  entry_.model = model->name();
  return model;
}

void Call::reserve(size_t bytes) {
  inflated_bytes_ += bytes;
  if ((engine_.inflated_bytes += bytes) <= engine_.options.limits.buffered_bytes) return;
  throw HttpError(429, "the server is overloaded: try again");
}

ParseBudget Call::parse_budget() {
  const auto check = [this] {
    if (departed()) throw Departed();
  };
  return {.bytes = 3 * engine_.options.limits.body_bytes,
          .reserve =
              [this, check](size_t bytes) {
                check();
                reserve(bytes);
              },
          .check = check};
}

void Call::respond(HttpResponse response) {
  if (responded_.exchange(true)) return;
  engine_.inflated_bytes -= inflated_bytes_;  // before the client knows, which may send the next body at once
  if (departed()) {
    if (!exchange_->timed_out()) engine_.metrics.count_departed(route_, entry_.model);  // else 504 is counted
    return;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  {
    const std::lock_guard lock(times_mutex_);
    times_.total = seconds;
    entry_.times = times_;
    // Triton counts inferences, which are POST requests.
    if (!entry_.model.empty() && entry_.method == "POST")
      engine_.statistics.add_request(entry_.model, response.status < 400, times_);
    response.headers.emplace_back(
        "Server-Timing", "decode;dur=" + milliseconds(times_.decode) + ", queue;dur=" + milliseconds(times_.queue) +
                             ", model;dur=" + milliseconds(times_.model) + ", total;dur=" + milliseconds(seconds));
  }
  engine_.browsers.permit(request_, response);
  response.headers.emplace_back("X-Request-Id", entry_.request_id);
  engine_.metrics.count_request(route_, response.status, seconds, entry_.model);
  entry_.status = response.status;
  entry_.response_bytes = response.body.size();
  engine_.log(entry_);
  exchange_->respond(std::move(response));
}

void Call::fail(const std::exception& error) {
  const Failure failure = failure_of(error, route_);
  if (!responded_) entry_.error = error.what();
  respond(error_response(route_, failure.status == 0 ? 400 : failure.status, failure.error));
}

void Call::let_others_run() const {
  if (departed() || !engine_.batcher.run_waiting()) throw Departed();
}

void Call::add_times(double decode, double queue, double model) {
  const std::lock_guard lock(times_mutex_);
  times_.decode = std::max(times_.decode, decode);
  times_.queue = std::max(times_.queue, queue);
  times_.model = std::max(times_.model, model);
}

void Call::set_output_seconds(double seconds) {
  const std::lock_guard lock(times_mutex_);
  times_.output = seconds;
}

// A full disk must not keep the response from the client.
void Engine::log(const LogEntry& entry) {
  if (!options.log) return;
  try {
    options.log(log_line(entry));
  } catch (const std::exception& error) {
    if (!log_has_failed.exchange(true)) warn(str("serve: a line of the log was lost: ", error.what()));
  }
}

}  // namespace vitrail::serve
