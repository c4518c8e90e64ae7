// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches over clients: images that wait for the same computation run together.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "vitrail/serve/failure_internal.h"
#include "vitrail/serve/served_model_internal.h"

namespace vitrail::serve {

using Clock = std::chrono::steady_clock;

// The results of an image, each without the batch axis; with an error there are none.
struct BatchResult {
  std::vector<Tensor> results = {};
  Failure failure = {};
  double queue_seconds = 0, model_seconds = 0;
};

// An image that waits.
struct BatchItem {
  ModelPointer model;
  uint64_t client = 0;  // clients take turns
  infer::Request request;
  Tensor input;                           // [C, H, W]
  std::function<bool()> departed;         // whether nobody waits for the result
  std::function<void(BatchResult)> done;  // called once, unless departed; must not throw
  Clock::time_point arrival = Clock::now();
};

struct TaskOptions {
  size_t bytes = 0;      // the image that it has in memory
  bool is_long = false;  // it calls run_waiting()
};

class Batcher {
 public:
  static constexpr size_t kMaxWaitingBytes = size_t{256} << 20;  // 445 images of 224×224

  struct Options {
    int64_t batch = 8;
    double delay_ms = 0;
    std::function<void(const std::string& model, size_t images, double seconds)> on_batch = {};
  };

  explicit Batcher(Options options);
  ~Batcher() { stop(); }
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Waits while too many inputs are in memory.
  void add(BatchItem item);
  // Runs a task alone on the thread that computes; it must not throw.  Waits as add() if the task has `bytes` in
  // memory.
  void run(std::function<void()> task, TaskOptions options = {});
  // For a long task, from time to time: runs a batch and a short task of those that wait.  Returns false after stop().
  bool run_waiting();
  void stop();                                           // drops what waits
  std::map<std::string, size_t> waiting_images() const;  // by model, without those that have none

 private:
  struct Task {
    std::function<void()> run;
    TaskOptions options;
  };

  void loop();
  void run_task(std::unique_lock<std::mutex>& lock, bool short_only);
  void run_batch(std::unique_lock<std::mutex>& lock);
  bool fits(size_t bytes) const { return waiting_bytes_ == 0 || waiting_bytes_ + bytes <= kMaxWaitingBytes; }
  void order_by_turns();
  std::vector<BatchItem> take_batch(std::unique_lock<std::mutex>& lock);
  void compute(std::vector<BatchItem> batch) const;

  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable work_, space_;
  std::deque<BatchItem> items_;
  std::deque<Task> tasks_;
  size_t waiting_bytes_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

// Throws HttpError 503 if the weights cannot be trusted any more, and warns with the path, which clients must not see.
void require_unchanged_files(const ServedModel& model);

}  // namespace vitrail::serve
