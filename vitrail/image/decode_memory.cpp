// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/decode_memory.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "vitrail/base/error.h"
#include "vitrail/base/memory_limit.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/image/codecs_internal.h"

namespace vitrail::image {
namespace {

// The bytes that scopes hold.  Requests are granted in the order of their arrival, so that a large one is not passed by
// small ones for ever.
class Budget {
 public:
  void set_limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    changed_.notify_all();
  }

  int64_t limit() {
    const std::lock_guard lock(mutex_);
    return limit_;
  }

  // Returns whether the bytes are beside the limit.
  bool reserve(int64_t bytes) {
    std::unique_lock lock(mutex_);
    if (bytes <= limit_ / 32) return reserve_small(bytes, lock);
    const uint64_t turn = arrivals_++;
    changed_.wait(lock, [&] { return turn == granted_ && fits(bytes); });
    ++granted_;
    held_ += bytes;
    changed_.notify_all();
    return false;
  }

  void release(int64_t bytes, bool is_beside) {
    const std::lock_guard lock(mutex_);
    (is_beside ? beside_ : held_) -= bytes;
    changed_.notify_all();
  }

 private:
  bool fits(int64_t bytes) const { return held_ == 0 || held_ + bytes <= limit_; }

  bool reserve_small(int64_t bytes, std::unique_lock<std::mutex>& lock) {
    const auto fits_now = [&] { return arrivals_ == granted_ && fits(bytes); };
    changed_.wait(lock, [&] { return fits_now() || beside_ + bytes <= limit_ / 8; });
    const bool is_beside = !fits_now();
    (is_beside ? beside_ : held_) += bytes;
    return is_beside;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t limit_ = std::min(int64_t{1} << 30, memory_limit() / 2);
  int64_t held_ = 0, beside_ = 0;
  uint64_t arrivals_ = 0, granted_ = 0;
};

Budget& budget() {
  static Budget instance;
  return instance;
}

thread_local DecodeMemoryScope* current_scope = nullptr;

}  // namespace

void set_decode_memory(int64_t bytes) {
  if (bytes < 1) throw Error("decode memory", "at least 1 byte", str(bytes));
  budget().set_limit(bytes);
}

int64_t decode_memory() { return budget().limit(); }

DecodeMemoryScope::DecodeMemoryScope() {
  if (current_scope != nullptr) throw Error("DecodeMemoryScope", "at most one on a thread", "a second one");
  current_scope = this;
}

DecodeMemoryScope::~DecodeMemoryScope() {
  release();
  current_scope = nullptr;
}

void DecodeMemoryScope::reserve(int64_t bytes) {
  release();  // a thread that held memory while it waits could wait for itself
  is_beside_ = budget().reserve(bytes);
  held_ = bytes;
}

void DecodeMemoryScope::release() {
  if (held_ > 0) budget().release(held_, is_beside_);
  held_ = 0;
}

void check_image_memory(const std::string& where, int64_t bytes, int64_t limit) {
  const int64_t max = limit / 4 * 3;
  if (bytes <= max) return;
  throw Error(where, str("pixels that need at most ", max >> 20, " MiB, three quarters of the memory limit"),
              str(ceil_div(bytes, int64_t{1} << 20), " MiB"));
}

void reserve_pixels(const std::string& where, int64_t width, int64_t height, int64_t extra_bytes_per_pixel) {
  const int64_t bytes = width * height * (kDecodeBytesPerPixel + extra_bytes_per_pixel);
  check_image_memory(where, bytes, memory_limit());
  if (current_scope != nullptr) current_scope->reserve(bytes);
}

}  // namespace vitrail::image
