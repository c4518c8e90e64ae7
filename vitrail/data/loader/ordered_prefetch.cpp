// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/ordered_prefetch.h"

#include <system_error>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"

namespace vitrail::data {

PrefetchThreads::PrefetchThreads(size_t count, PrefetchOptions options, Step step)
    : count_(count),
      in_flight_(options.in_flight),
      max_bytes_(options.max_bytes),
      step_(std::move(step)),
      done_(options.in_flight, false),
      bytes_(options.in_flight, 0) {
  if (options.threads < 1) throw Error("prefetch", "at least 1 thread", str(options.threads));
  if (options.in_flight < 1) throw Error("prefetch", "at least 1 item in flight", "0");
  // More threads than items in flight would only wait.
  const size_t threads = std::min({static_cast<size_t>(options.threads), in_flight_, count_});
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& failure) {
    stop();
    throw Error(str("cannot start ", counted(threads, "thread"), " for reading images: ", failure.code().message(),
                    " (--threads, and the limits ulimit -u and -v)"));
  }
}

PrefetchThreads::~PrefetchThreads() { stop(); }

void PrefetchThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Called with the lock held.  The consumer may wait for its next item, so that one does not wait for bytes.
bool PrefetchThreads::has_room() const {
  return next_ == consumed_ || (next_ < consumed_ + in_flight_ && ready_bytes_ < max_bytes_);
}

void PrefetchThreads::work() {
  const ThreadCount single_threaded(1);
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stop_ || next_ == count_ || has_room(); });
    if (stop_ || next_ == count_) return;
    const size_t index = next_++;
    const size_t slot = index % in_flight_;
    lock.unlock();
    const size_t bytes = step_(slot, index);
    lock.lock();
    done_[slot] = true;
    bytes_[slot] = bytes;
    ready_bytes_ += bytes;
    if (index == consumed_) ready_.notify_one();
  }
}

std::optional<size_t> PrefetchThreads::wait() {
  std::unique_lock lock(mutex_);
  if (consumed_ == count_) return std::nullopt;
  const size_t slot = consumed_ % in_flight_;
  ready_.wait(lock, [&] { return done_[slot]; });
  return slot;
}

bool PrefetchThreads::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return ready_.wait_for(lock, time, [&] { return consumed_ == count_ || done_[consumed_ % in_flight_]; });
}

void PrefetchThreads::release() {
  {
    const std::lock_guard lock(mutex_);
    const size_t slot = consumed_ % in_flight_;
    done_[slot] = false;
    ready_bytes_ -= std::exchange(bytes_[slot], 0);
    ++consumed_;
  }
  room_.notify_all();  // the bytes of one item may be room for several
}

}  // namespace vitrail::data
