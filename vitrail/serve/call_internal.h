// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request on its way through the server, and what all requests share.
#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "vitrail/serve/batcher_internal.h"
#include "vitrail/serve/browsers_internal.h"
#include "vitrail/serve/http_internal.h"
#include "vitrail/serve/json_body_internal.h"
#include "vitrail/serve/metrics_internal.h"
#include "vitrail/serve/model_registry_internal.h"
#include "vitrail/serve/model_statistics_internal.h"
#include "vitrail/serve/recent_embeddings_internal.h"
#include "vitrail/serve/request_log_internal.h"
#include "vitrail/serve/target_internal.h"
#include "vitrail/serve/worker_pool_internal.h"

namespace vitrail::serve {

// What the routes work with.
struct Engine {
  const ServeOptions& options;
  const Browsers& browsers;
  Metrics& metrics;
  std::atomic<size_t>& inflated_bytes;  // bodies in flight: content of compressed ones, values of JSON
  ModelRegistry& models;
  WorkerPool& pool;
  Batcher& batcher;
  RecentEmbeddings& embeddings;
  ModelStatistics& statistics;
  std::function<std::string()> fault;       // why it is not ready; empty: it is
  std::function<std::string()> exposition;  // the text of the metrics
  std::atomic<bool> log_has_failed{false};  // a warning said so

  void log(const LogEntry& entry);
};

// The form of errors: {"error": "…"}, or that of OpenAI's routes, {"error": {"message", "type", "code"}}.
HttpResponse error_response(const std::string& route, int status, const std::string& message);
constexpr const char* kOpenAiRoute = "openai";  // one that the server does not have
HttpResponse json_response(const nlohmann::ordered_json& value);

// Ends a long computation whose client has left, or whose server ends.
struct Departed : std::exception {};

// Responds once: with a response, an error, or 500 when it is destroyed without.
class Call {
 public:
  Call(Engine& engine, std::string route, HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Engine& engine() const { return engine_; }
  HttpRequest& request() { return request_; }
  const std::string& route() const { return route_; }
  const Target& target() const { return target_; }
  // Decompresses the body as decompress_body().  Throws HttpError 429 if those in flight exceed limits.buffered_bytes.
  void decompress();
  // For the JSON of the body: three times limits.body_bytes, and with others in flight limits.buffered_bytes.
  ParseBudget parse_budget();
  void set_target(Target target) { target_ = std::move(target); }
  RequestOptions& options() { return options_; }
  bool departed() const { return exchange_->departed(); }
  uint64_t client() const { return exchange_->client(); }
  // The model that the option `model` names, by default the first one that fits the task.
  ModelPointer take_model(const std::string& task) { return find_model(options_.text("model"), task); }
  // Calls ModelRegistry::find().  The statistics, the metrics and the log have the request under this model.
  ModelPointer find_model(const std::optional<std::string>& name, const std::string& task = "");

  void respond(HttpResponse response);
  void respond(const nlohmann::ordered_json& value) { respond(json_response(value)); }
  void fail(const std::exception& error);  // by failure_of(), with 400 for what the client sent
  // Runs `action` and responds with an error if it throws another exception than Departed.
  template <class Action>
  void guard(Action action) {
    try {
      action();
    } catch (const Departed&) {
      // nobody waits for the response
    } catch (const std::exception& error) {
      fail(error);
    }
  }
  // For a long task of the batcher, from time to time: runs what waits.  Throws Departed.
  void let_others_run() const;

  void add_times(double decode, double queue, double model);  // the times of an image; the largest are reported
  void set_output_seconds(double seconds);                    // the time for the response

 private:
  void reserve(size_t bytes);  // until the response; throws HttpError 429

  Engine& engine_;
  std::string route_;
  HttpRequest request_;
  std::shared_ptr<HttpExchange> exchange_;
  Target target_;
  RequestOptions options_;
  Clock::time_point begin_ = Clock::now();
  size_t inflated_bytes_ = 0;
  LogEntry entry_;
  std::atomic<bool> responded_{false};
  mutable std::mutex times_mutex_;
  RequestTimes times_;
};

using CallPointer = std::shared_ptr<Call>;

}  // namespace vitrail::serve
