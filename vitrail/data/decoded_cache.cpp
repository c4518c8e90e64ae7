// SPDX-License-Identifier: Apache-2.0
// Pictures kept in memory, and the hold-out split: what loaders of one dataset share.
#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/sampler_internal.h"

namespace vitrail::data {
namespace {

class DecodedDataset : public Dataset {
 public:
  DecodedDataset(std::shared_ptr<const Dataset> inner, int64_t limit)
      : inner_(std::move(inner)), limit_(limit), states_(inner_->size()), images_(inner_->size()) {
    class_names_ = inner_->class_names();
  }

  int64_t size() const override { return inner_->size(); }
  std::string path(int64_t i) const override { return inner_->path(i); }
  int64_t label(int64_t i) const override { return inner_->label(i); }

  image::Image image(int64_t i) const override {
    if (states_.at(i).load(std::memory_order_acquire) == State::kept) return images_[i];
    image::Image image = inner_->image(i);
    keep(i, image);
    return image;
  }

 private:
  enum class State : uint8_t { absent, being_kept, kept };

  // Whoever comes first keeps it; a second thread that decoded the same picture just uses its own.
  void keep(int64_t i, const image::Image& image) const {
    const int64_t bytes = static_cast<int64_t>(image.pixels.size());
    if (kept_bytes_.load(std::memory_order_relaxed) + bytes > limit_) return;
    State absent = State::absent;
    if (!states_[i].compare_exchange_strong(absent, State::being_kept)) return;
    if (kept_bytes_.fetch_add(bytes) + bytes > limit_) {
      kept_bytes_.fetch_sub(bytes);
      states_[i].store(State::absent);
      return;
    }
    images_[i] = image;
    states_[i].store(State::kept, std::memory_order_release);
  }

  std::shared_ptr<const Dataset> inner_;
  int64_t limit_;
  mutable std::vector<std::atomic<State>> states_;
  mutable std::vector<image::Image> images_;  // [i] is written once, before states_[i] says so
  mutable std::atomic<int64_t> kept_bytes_{0};
};

}  // namespace

std::shared_ptr<const Dataset> cache_decoded(std::shared_ptr<const Dataset> dataset, int64_t limit_bytes) {
  if (limit_bytes <= 0) return dataset;
  return std::make_shared<DecodedDataset>(std::move(dataset), limit_bytes);
}

HoldoutSplit holdout_split(const Dataset& dataset, int64_t held_out, uint64_t seed) {
  const int64_t size = dataset.size();
  if (held_out < 0 || held_out >= size) throw Error("hold out", str("0 to ", size - 1, " samples"), str(held_out));
  std::map<int64_t, std::vector<int64_t>> classes;
  for (int64_t i = 0; i < size; ++i) classes[dataset.label(i)].push_back(i);

  // Whole parts first; what is then missing goes to the largest remainders.
  std::map<int64_t, int64_t> quotas;
  std::vector<std::pair<int64_t, int64_t>> remainders;  // −remainder, class
  int64_t missing = held_out;
  for (const auto& [label, members] : classes) {
    const int64_t share = held_out * static_cast<int64_t>(members.size());
    quotas[label] = share / size;
    missing -= share / size;
    remainders.emplace_back(-(share % size), label);
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < missing; ++i) ++quotas[remainders[i].second];

  HoldoutSplit split;
  for (const auto& [label, members] : classes) {
    const uint64_t key = random_key("hold out", seed, static_cast<uint64_t>(label));
    const std::vector<int64_t> order = epoch_order(members, true, key, 0);
    split.held_out.insert(split.held_out.end(), order.begin(), order.begin() + quotas[label]);
    split.train.insert(split.train.end(), order.begin() + quotas[label], order.end());
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.held_out.begin(), split.held_out.end());
  return split;
}

}  // namespace vitrail::data
