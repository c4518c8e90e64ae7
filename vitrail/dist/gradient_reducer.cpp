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
void reduce(Communicator& communicator, T* data, int64_t n, bool average) {
  communicator.all_reduce_sum(data, n);
  if (!average) return;
  const T share = T(1) / static_cast<T>(communicator.size());
  for (int64_t i = 0; i < n; ++i) data[i] *= share;
}

void add(ReducerTimes& to, const ReducerTimes& times) {
  to.buckets += times.buckets;
  to.bytes += times.bytes;
  to.communication += times.communication;
  to.overlapped += times.overlapped;
  to.waited += times.waited;
}

}  // namespace

struct GradientReducer::Impl {
  std::shared_ptr<Communicator> communicator;
  ReducerOptions options;
  std::vector<Bucket> buckets;
  std::vector<size_t> bucket_of;  // [parameter]
  std::vector<Tensor> shapes;     // meta tensors: what each gradient must look like
  std::unordered_map<const AutogradSlot*, size_t> index_of;

  // Owned by the caller's thread until its bucket is handed over, by the communication thread from then on.
  std::vector<Tensor> gradients;
  std::vector<size_t> missing;  // [bucket]: gradients that have not come
  bool active = false;
  ReducerTimes last, total;

  std::mutex mutex;
  std::condition_variable wake, done;
  size_t handed = 0, reduced = 0;  // buckets given to the thread, and those it has finished; both in order
  bool stopping = false;
  std::vector<std::pair<Clock::time_point, Clock::time_point>> spans;  // of each bucket's exchange in this pass
  std::exception_ptr failure;
  std::thread thread;

  void run();
  void exchange(const Bucket& bucket);
  void hand_over(size_t up_to);
};

// The communication thread: buckets in order, as soon as they are handed over.
void GradientReducer::Impl::run() {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return stopping || reduced < handed; });
    if (stopping) return;
    const size_t bucket = reduced;
    const bool failed = failure != nullptr;
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    std::exception_ptr problem;
    try {
      if (!failed) exchange(buckets[bucket]);
    } catch (...) {
      problem = std::current_exception();
    }
    const Clock::time_point end = Clock::now();
    lock.lock();
    if (problem) failure = problem;
    spans.emplace_back(begin, end);
    ++reduced;
    done.notify_all();
  }
}

// Packs a bucket's gradients, reduces them in one call and unpacks them; one large gradient is reduced where it is.
void GradientReducer::Impl::exchange(const Bucket& bucket) {
  const bool in_place = bucket.members.size() == 1 && gradients[bucket.members[0].parameter].defined();
  const Tensor& data = in_place ? gradients[bucket.members[0].parameter] : bucket.data;
  const size_t element = size_of(bucket.dtype);
  for (const Bucket::Member& member : bucket.members) {
    if (in_place) break;
    std::byte* const to = data.raw() + static_cast<size_t>(member.offset) * element;
    const Tensor& gradient = gradients[member.parameter];
    const size_t bytes = static_cast<size_t>(member.count) * element;
    gradient.defined() ? std::memcpy(to, gradient.raw(), bytes) : std::memset(to, 0, bytes);
  }
  if (bucket.dtype == DType::f64) {
    reduce(*communicator, data.data<double>(), bucket.count, options.average);
  } else {
    reduce(*communicator, data.data<float>(), bucket.count, options.average);
  }
  for (const Bucket::Member& member : bucket.members) {
    const Tensor& gradient = gradients[member.parameter];
    if (in_place || !gradient.defined()) continue;
    std::memcpy(gradient.raw(), data.raw() + static_cast<size_t>(member.offset) * element,
                static_cast<size_t>(member.count) * element);
  }
}

void GradientReducer::Impl::hand_over(size_t up_to) {
  const std::lock_guard lock(mutex);
  if (up_to == handed) return;
  handed = up_to;
  wake.notify_one();
}

GradientReducer::GradientReducer(std::shared_ptr<Communicator> communicator, const std::vector<Tensor>& parameters,
                                 const ReducerOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->communicator = std::move(communicator);
  impl_->options = options;
  if (impl_->communicator->size() == 1) return;
  impl_->buckets = buckets_of(parameters, options.bucket_bytes);
  impl_->bucket_of.resize(parameters.size());
  for (size_t b = 0; b < impl_->buckets.size(); ++b) {
    for (const Bucket::Member& member : impl_->buckets[b].members) impl_->bucket_of[member.parameter] = b;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    impl_->shapes.push_back(Tensor::empty(parameters[i].shape(), parameters[i].dtype(), Device::meta));
    if (parameters[i].autograd()) impl_->index_of.emplace(parameters[i].autograd().get(), i);
  }
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

GradientReducer::~GradientReducer() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  impl_->thread.join();
}

void GradientReducer::begin() {
  if (impl_->active) throw Error("gradient reducer", "finish() before the next begin()", "a pass that has not ended");
  impl_->active = true;
  impl_->gradients.assign(impl_->shapes.size(), Tensor());
  impl_->missing.clear();
  for (const Bucket& bucket : impl_->buckets) impl_->missing.push_back(bucket.members.size());
  const std::lock_guard lock(impl_->mutex);
  impl_->handed = impl_->reduced = 0;
  impl_->spans.clear();
  impl_->failure = nullptr;
}

void GradientReducer::ready(size_t index, const Tensor& gradient) {
  Impl& self = *impl_;
  if (!self.active) throw Error("gradient reducer", "begin() before gradients", str("a gradient of parameter ", index));
  if (self.communicator->size() == 1) return;
  if (index >= self.shapes.size() || self.gradients[index].defined()) {
    throw Error("gradient reducer", str("one gradient of each of ", self.shapes.size(), " parameters"),
                str("another of parameter ", index));
  }
  const Tensor& shape = self.shapes[index];
  if (!(gradient.shape() == shape.shape()) || gradient.dtype() != shape.dtype() || !gradient.is_contiguous()) {
    throw Error("gradient reducer",
                str("a contiguous gradient ", name_of(shape.dtype()), " ", shape.shape(), " of parameter ", index),
                str(name_of(gradient.dtype()), " ", gradient.shape()));
  }
  self.gradients[index] = gradient;
  --self.missing[self.bucket_of[index]];
  size_t complete = self.handed;  // only this thread changes it
  while (complete < self.buckets.size() && self.missing[complete] == 0) ++complete;
  self.hand_over(complete);
}

void GradientReducer::ready(const AutogradSlot& leaf, const Tensor& gradient) {
  if (impl_->communicator->size() == 1) return;
  const auto found = impl_->index_of.find(&leaf);
  if (found == impl_->index_of.end()) {
    throw Error("gradient reducer", "gradients of the parameters that it was made for", "one of another tensor");
  }
  ready(found->second, gradient);
}

void GradientReducer::finish() {
  Impl& self = *impl_;
  if (!self.active) throw Error("gradient reducer", "begin() before finish()", "no pass");
  const Clock::time_point ended = Clock::now();
  self.hand_over(self.buckets.size());
  std::unique_lock lock(self.mutex);
  self.done.wait(lock, [&] { return self.reduced == self.buckets.size(); });
  self.active = false;
  self.gradients.clear();
  if (self.failure) std::rethrow_exception(self.failure);
  ReducerTimes times{.buckets = static_cast<int64_t>(self.buckets.size())};
  for (const Bucket& bucket : self.buckets) times.bytes += bucket.count * static_cast<int64_t>(size_of(bucket.dtype));
  for (const auto& [begin, end] : self.spans) {
    times.communication += seconds(end - begin);
    times.overlapped += std::max(0.0, seconds(std::min(end, ended) - begin));
  }
  times.waited = self.buckets.empty() ? 0 : seconds(Clock::now() - ended);
  self.last = times;
  add(self.total, times);
}

size_t GradientReducer::buckets() const { return impl_->buckets.size(); }
ReducerTimes GradientReducer::last() const { return impl_->last; }
ReducerTimes GradientReducer::total() const { return impl_->total; }

}  // namespace vitrail::dist
