// SPDX-License-Identifier: Apache-2.0
#include "vitrail/dist/gradient_reducer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "vitrail/base/error.h"
#include "vitrail/dist/buckets_internal.h"

namespace vitrail::dist {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

template <class T>
void all_reduce(Communicator& communicator, T* data, int64_t n, bool average) {
  communicator.all_reduce_sum(data, n);
  if (!average) return;
  const T factor = T(1) / static_cast<T>(communicator.size());
  for (int64_t i = 0; i < n; ++i) data[i] *= factor;
}

void add(ReducerStats& total, const ReducerStats& pass) {
  total.buckets += pass.buckets;
  total.bytes += pass.bytes;
  total.communication_seconds += pass.communication_seconds;
  total.overlapped_seconds += pass.overlapped_seconds;
  total.wait_seconds += pass.wait_seconds;
}

}  // namespace

struct GradientReducer::Impl {
  std::shared_ptr<Communicator> communicator;
  ReducerOptions options;
  std::vector<Bucket> buckets;
  std::vector<size_t> bucket_of;  // [parameter]
  std::vector<Tensor> expected;   // [parameter]: meta tensors with the shape and dtype of each gradient
  std::unordered_map<const AutogradSlot*, size_t> index_of;

  // Written by the caller's thread until the bucket is queued, read by the communication thread afterwards.
  std::vector<Tensor> gradients;
  std::vector<size_t> num_missing;  // [bucket]: gradients that are not final yet
  bool active = false;              // between begin() and finish()
  ReducerStats last_pass, total;

  std::mutex mutex;  // guards the members below
  std::condition_variable queued, reduced;
  size_t num_queued = 0, num_reduced = 0;  // buckets of this pass, both in bucket order
  bool stopping = false;
  std::vector<std::pair<Clock::time_point, Clock::time_point>> intervals;  // begin and end of each all-reduce
  std::exception_ptr failure;
  std::thread thread;

  void communication_loop();
  void reduce_bucket(const Bucket& bucket);
  void queue_buckets(size_t end);
};

// Reduces the queued buckets in order.  After a failure the remaining buckets of the pass are skipped.
void GradientReducer::Impl::communication_loop() {
  std::unique_lock lock(mutex);
  while (true) {
    queued.wait(lock, [&] { return stopping || num_reduced < num_queued; });
    if (stopping) return;
    const size_t bucket = num_reduced;
    const bool failed = failure != nullptr;
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    std::exception_ptr exception;
    try {
      if (!failed) reduce_bucket(buckets[bucket]);
    } catch (...) {
      exception = std::current_exception();
    }
    const Clock::time_point end = Clock::now();
    lock.lock();
    if (exception) failure = exception;
    intervals.emplace_back(begin, end);
    ++num_reduced;
    reduced.notify_all();
  }
}

// Packs the gradients of a bucket, all-reduces the buffer and unpacks it.  A bucket with one gradient is reduced in
// place.
void GradientReducer::Impl::reduce_bucket(const Bucket& bucket) {
  const bool in_place = bucket.members.size() == 1 && gradients[bucket.members[0].parameter].defined();
  const Tensor& data = in_place ? gradients[bucket.members[0].parameter] : bucket.buffer;
  const size_t element_size = size_of(bucket.dtype);
  for (const Bucket::Member& member : bucket.members) {
    if (in_place) break;
    std::byte* const to = data.raw() + static_cast<size_t>(member.offset) * element_size;
    const Tensor& gradient = gradients[member.parameter];
    const size_t bytes = static_cast<size_t>(member.count) * element_size;
    gradient.defined() ? std::memcpy(to, gradient.raw(), bytes) : std::memset(to, 0, bytes);
  }
  if (bucket.dtype == DType::f64) {
    all_reduce(*communicator, data.data<double>(), bucket.count, options.average);
  } else {
    all_reduce(*communicator, data.data<float>(), bucket.count, options.average);
  }
  for (const Bucket::Member& member : bucket.members) {
    const Tensor& gradient = gradients[member.parameter];
    if (in_place || !gradient.defined()) continue;
    std::memcpy(gradient.raw(), data.raw() + static_cast<size_t>(member.offset) * element_size,
                static_cast<size_t>(member.count) * element_size);
  }
}

// Hands the buckets before `end` to the communication thread.
void GradientReducer::Impl::queue_buckets(size_t end) {
  const std::lock_guard lock(mutex);
  if (end == num_queued) return;
  num_queued = end;
  queued.notify_one();
}

GradientReducer::GradientReducer(std::shared_ptr<Communicator> communicator, const std::vector<Tensor>& parameters,
                                 const ReducerOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->communicator = std::move(communicator);
  impl_->options = options;
  if (impl_->communicator->size() == 1) return;
  impl_->buckets = make_buckets(parameters, options.bucket_bytes);
  impl_->bucket_of.resize(parameters.size());
  for (size_t b = 0; b < impl_->buckets.size(); ++b) {
    for (const Bucket::Member& member : impl_->buckets[b].members) impl_->bucket_of[member.parameter] = b;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    impl_->expected.push_back(Tensor::empty(parameters[i].shape(), parameters[i].dtype(), Device::meta));
    if (parameters[i].autograd()) impl_->index_of.emplace(parameters[i].autograd().get(), i);
  }
  impl_->thread = std::thread([impl = impl_.get()] { impl->communication_loop(); });
}

GradientReducer::~GradientReducer() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->queued.notify_one();
  impl_->thread.join();
}

void GradientReducer::begin() {
  if (impl_->active) throw Error("gradient reducer", "finish() before the next begin()", "begin() twice");
  impl_->active = true;
  impl_->gradients.assign(impl_->expected.size(), Tensor());
  impl_->num_missing.clear();
  for (const Bucket& bucket : impl_->buckets) impl_->num_missing.push_back(bucket.members.size());
  const std::lock_guard lock(impl_->mutex);
  impl_->num_queued = impl_->num_reduced = 0;
  impl_->intervals.clear();
  impl_->failure = nullptr;
}

void GradientReducer::ready(size_t index, const Tensor& gradient) {
  Impl& self = *impl_;
  if (!self.active) throw Error("gradient reducer", "begin() before gradients", str("a gradient of parameter ", index));
  if (self.communicator->size() == 1) return;
  if (index >= self.expected.size() || self.gradients[index].defined()) {
    throw Error("gradient reducer", str("one gradient of each of ", self.expected.size(), " parameters"),
                str("another of parameter ", index));
  }
  const Tensor& expected = self.expected[index];
  if (!(gradient.shape() == expected.shape()) || gradient.dtype() != expected.dtype() || !gradient.is_contiguous()) {
    throw Error(
        "gradient reducer",
        str("a contiguous gradient ", name_of(expected.dtype()), " ", expected.shape(), " of parameter ", index),
        str(name_of(gradient.dtype()), " ", gradient.shape()));
  }
  self.gradients[index] = gradient;
  --self.num_missing[self.bucket_of[index]];
  size_t end = self.num_queued;  // read without the lock: only this thread changes it
  while (end < self.buckets.size() && self.num_missing[end] == 0) ++end;
  self.queue_buckets(end);
}

void GradientReducer::ready(const AutogradSlot& leaf, const Tensor& gradient) {
  if (impl_->communicator->size() == 1) return;
  const auto found = impl_->index_of.find(&leaf);
  if (found == impl_->index_of.end()) {
    throw Error("gradient reducer", "a gradient of one of its parameters", "one of another tensor");
  }
  ready(found->second, gradient);
}

void GradientReducer::finish() {
  Impl& self = *impl_;
  if (!self.active) throw Error("gradient reducer", "begin() before finish()", "no pass");
  const Clock::time_point backward_end = Clock::now();
  self.queue_buckets(self.buckets.size());
  std::unique_lock lock(self.mutex);
  self.reduced.wait(lock, [&] { return self.num_reduced == self.buckets.size(); });
  self.active = false;
  self.gradients.clear();
  if (self.failure) std::rethrow_exception(self.failure);
  ReducerStats stats{.buckets = static_cast<int64_t>(self.buckets.size())};
  for (const Bucket& bucket : self.buckets) stats.bytes += bucket.count * static_cast<int64_t>(size_of(bucket.dtype));
  for (const auto& [begin, end] : self.intervals) {
    stats.communication_seconds += seconds(end - begin);
    stats.overlapped_seconds += std::max(0.0, seconds(std::min(end, backward_end) - begin));
  }
  stats.wait_seconds = self.buckets.empty() ? 0 : seconds(Clock::now() - backward_end);
  self.last_pass = stats;
  add(self.total, stats);
}

ReducerStats GradientReducer::last_pass() const { return impl_->last_pass; }
ReducerStats GradientReducer::total() const { return impl_->total; }

}  // namespace vitrail::dist
