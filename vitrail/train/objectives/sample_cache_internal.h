// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// Samples of a dataset of images, kept in memory up to recipe.keep_decoded_mb.  Const functions are thread-safe.
template <class Sample>
class SampleCache {
 public:
  SampleCache(int64_t images, const DataRecipe& recipe)
      : skip_(recipe.unreadable == data::Unreadable::replace),
        limit_(recipe.keep_decoded_mb << 20),
        samples_(static_cast<size_t>(images)),
        bad_(static_cast<size_t>(images)) {}

  // The sample of an image, from `read()` unless it is kept; null if that throws Error and recipe.unreadable is "skip".
  // The first time, that is counted and a warning.  Sample::bytes() is its size in memory.
  template <class Read>
  std::shared_ptr<const Sample> get(int64_t image, const Read& read) const {
    const auto i = static_cast<size_t>(image);
    {
      const std::lock_guard lock(mutex_);
      if (bad_[i] || samples_[i]) return samples_[i];
    }
    try {
      auto sample = std::make_shared<const Sample>(read());
      const int64_t bytes = sample->bytes();
      const std::lock_guard lock(mutex_);
      if (!samples_[i] && bytes_ + bytes <= limit_) {
        bytes_ += bytes;
        samples_[i] = sample;
      }
      return sample;
    } catch (const Error& error) {
      if (!skip_) throw;
      const std::lock_guard lock(mutex_);
      if (!bad_[i]) {
        ++unreadable_;
        warn(str("skipped: ", error.what()));
      }
      bad_[i] = true;
      return nullptr;
    }
  }

  int64_t unreadable() const {
    const std::lock_guard lock(mutex_);
    return unreadable_;
  }

 private:
  bool skip_;
  int64_t limit_;  // bytes
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Sample>> samples_;
  mutable std::vector<bool> bad_;
  mutable int64_t bytes_ = 0, unreadable_ = 0;
};

}  // namespace vitrail::train
