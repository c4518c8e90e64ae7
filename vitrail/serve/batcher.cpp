// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/batcher_internal.h"

#include <algorithm>

#include "vitrail/base/callbacks.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

size_t bytes_of(const BatchItem& item) { return static_cast<size_t>(item.input.numel()) * sizeof(float); }

bool run_together(const BatchItem& a, const BatchItem& b) {
  return a.model == b.model && a.input.shape() == b.input.shape() && a.request == b.request;
}

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void require_unchanged_files(const ServedModel& model) {
  try {
    model.check_files();
  } catch (const Error& error) {
    warn(error.what());
    throw HttpError(503, "a file of a model has changed: reload the models");
  }
}

Batcher::Batcher(Options options) : options_(std::move(options)), thread_([this] { loop(); }) {}

void Batcher::add(BatchItem item) {
  std::unique_lock lock(mutex_);
  const size_t bytes = bytes_of(item);
  space_.wait(lock, [&] { return stopped_ || fits(bytes); });
  if (stopped_) return;
  waiting_bytes_ += bytes;
  items_.push_back(std::move(item));
  work_.notify_one();
}

void Batcher::run(std::function<void()> task, TaskOptions options) {
  std::unique_lock lock(mutex_);
  if (options.bytes > 0) space_.wait(lock, [&] { return stopped_ || fits(options.bytes); });
  if (stopped_) return;
  waiting_bytes_ += options.bytes;
  tasks_.push_back({std::move(task), options});
  work_.notify_one();
}

bool Batcher::run_waiting() {
  std::unique_lock lock(mutex_);
  if (!stopped_) run_task(lock, true);
  if (!stopped_ && !items_.empty()) run_batch(lock);
  return !stopped_;
}

std::map<std::string, size_t> Batcher::waiting_images() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, size_t> counts;
  for (const BatchItem& item : items_) ++counts[item.model->name()];
  return counts;
}

void Batcher::stop() {
  std::deque<BatchItem> items;  // destroyed without the lock
  std::deque<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    items.swap(items_);
    tasks.swap(tasks_);
    work_.notify_all();
    space_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Batcher::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopped_ || !items_.empty() || !tasks_.empty(); });
    if (stopped_) return;
    run_task(lock, false);
    if (!stopped_ && !items_.empty()) run_batch(lock);
  }
}

// Runs the first task, if there is one, without the lock.
void Batcher::run_task(std::unique_lock<std::mutex>& lock, bool short_only) {
  const auto first =
      std::ranges::find_if(tasks_, [&](const Task& task) { return !short_only || !task.options.is_long; });
  if (first == tasks_.end()) return;
  Task task = std::move(*first);
  tasks_.erase(first);
  waiting_bytes_ -= task.options.bytes;
  space_.notify_all();
  lock.unlock();
  task.run();
  task.run = nullptr;  // its destructor may respond
  lock.lock();
}

void Batcher::run_batch(std::unique_lock<std::mutex>& lock) {
  std::vector<BatchItem> batch = take_batch(lock);
  if (stopped_) return;
  lock.unlock();
  compute(std::move(batch));
  lock.lock();
}

// The first image of each client, then the second of each, …, and among these the oldest first.
void Batcher::order_by_turns() {
  std::map<uint64_t, size_t> counts;
  std::vector<std::pair<size_t, size_t>> order;  // the turn and the position of each
  for (size_t i = 0; i < items_.size(); ++i) order.emplace_back(counts[items_[i].client]++, i);
  if (counts.size() < 2) return;
  std::ranges::sort(order);
  std::deque<BatchItem> ordered;
  for (const auto& [turn, position] : order) ordered.push_back(std::move(items_[position]));
  items_.swap(ordered);
}

// The oldest image with those that run together with it, after waiting for more of them within the delay.
std::vector<BatchItem> Batcher::take_batch(std::unique_lock<std::mutex>& lock) {
  const auto delay =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(options_.delay_ms));
  order_by_turns();
  const Clock::time_point until = items_.front().arrival + delay;
  const auto complete = [this] {
    if (stopped_ || items_.empty() || !tasks_.empty()) return true;
    const auto companions =
        std::ranges::count_if(items_, [this](const BatchItem& item) { return run_together(item, items_.front()); });
    return companions >= options_.batch;
  };
  if (options_.delay_ms > 0) work_.wait_until(lock, until, complete);
  order_by_turns();
  std::vector<BatchItem> batch;
  std::deque<BatchItem> others;
  for (BatchItem& item : items_) {
    const bool fits =
        batch.empty() || (static_cast<int64_t>(batch.size()) < options_.batch && run_together(item, batch.front()));
    if (fits) {
      waiting_bytes_ -= bytes_of(item);
      batch.push_back(std::move(item));
    } else {
      others.push_back(std::move(item));
    }
  }
  items_ = std::move(others);
  space_.notify_all();
  return batch;
}

void Batcher::compute(std::vector<BatchItem> batch) const {
  std::erase_if(batch, [](const BatchItem& item) { return item.departed(); });
  if (batch.empty()) return;
  const Clock::time_point begin = Clock::now();
  std::vector<Tensor> results;
  Failure failure;
  const auto count = static_cast<int64_t>(batch.size());
  try {
    const Shape& shape = batch.front().input.shape();
    const Tensor inputs = Tensor::empty({count, shape[0], shape[1], shape[2]});
    for (int64_t i = 0; i < count; ++i) inputs.select(0, i).copy_(batch[static_cast<size_t>(i)].input);
    results = batch.front().model->loaded().run(inputs, batch.front().request);
    require_unchanged_files(*batch.front().model);
  } catch (const std::exception& error) {
    failure = failure_of(error, batch.front().model->name());
  }
  const double model_seconds = seconds_between(begin, Clock::now());
  if (options_.on_batch) options_.on_batch(batch.front().model->name(), batch.size(), model_seconds);
  for (int64_t i = 0; i < count; ++i) {
    BatchItem& item = batch[static_cast<size_t>(i)];
    BatchResult result{
        .failure = failure, .queue_seconds = seconds_between(item.arrival, begin), .model_seconds = model_seconds};
    if (failure.error.empty()) {
      for (const Tensor& rows : results) result.results.push_back(rows.select(0, i).contiguous());
    }
    item.done(std::move(result));
  }
}

}  // namespace vitrail::serve
