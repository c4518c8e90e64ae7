// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/decoded_cache.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

namespace vitrail::data {
namespace {

class CachedDataset : public Dataset {
 public:
  CachedDataset(std::shared_ptr<const Dataset> inner, int64_t limit)
      : inner_(std::move(inner)), limit_(limit), states_(inner_->size()), images_(inner_->size()) {
    class_names_ = inner_->class_names();
    split_ = inner_->split();
  }

  int64_t size() const override { return inner_->size(); }
  std::string path(int64_t i) const override { return inner_->path(i); }
  int64_t label(int64_t i) const override { return inner_->label(i); }
  bool is_multi_label() const override { return inner_->is_multi_label(); }
  std::vector<int64_t> labels(int64_t i) const override { return inner_->labels(i); }
  int64_t content_size(int64_t i) const override { return inner_->content_size(i); }
  uint64_t content_hash(int64_t i) const override { return inner_->content_hash(i); }
  std::optional<int64_t> modified_at(int64_t i) const override { return inner_->modified_at(i); }

  image::Image image(int64_t i) const override {
    if (states_.at(i).load(std::memory_order_acquire) == State::cached) return images_[i];
    image::Image image = inner_->image(i);
    cache(i, image);
    return image;
  }

 private:
  enum class State : uint8_t { absent, being_cached, cached };

  // The first thread caches the image.  Another one that decoded it at the same time returns its own copy.
  void cache(int64_t i, const image::Image& image) const {
    const int64_t bytes = static_cast<int64_t>(image.pixels.size());
    if (cached_bytes_.load(std::memory_order_relaxed) + bytes > limit_) return;
    State absent = State::absent;
    if (!states_[i].compare_exchange_strong(absent, State::being_cached)) return;
    if (cached_bytes_.fetch_add(bytes) + bytes > limit_) {
      cached_bytes_.fetch_sub(bytes);
      states_[i].store(State::absent);
      return;
    }
    images_[i] = image;
    states_[i].store(State::cached, std::memory_order_release);
  }

  std::shared_ptr<const Dataset> inner_;
  int64_t limit_;
  mutable std::vector<std::atomic<State>> states_;
  mutable std::vector<image::Image> images_;  // [i] is written once, before states_[i] becomes cached
  mutable std::atomic<int64_t> cached_bytes_{0};
};

}  // namespace

std::shared_ptr<const Dataset> cache_decoded(std::shared_ptr<const Dataset> dataset, int64_t limit_bytes) {
  if (limit_bytes <= 0) return dataset;
  return std::make_shared<CachedDataset>(std::move(dataset), limit_bytes);
}

}  // namespace vitrail::data
