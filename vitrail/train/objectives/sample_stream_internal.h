// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "vitrail/data/loader/ordered_prefetch.h"
#include "vitrail/data/loader/sampler_internal.h"
#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {

// The augmented samples of an epoch in random order, drawn ahead by worker threads.
template <class Drawn>
class SampleStream {
 public:
  using Draw = std::function<Drawn(int64_t image, int64_t epoch)>;

  // The context outlives the stream.
  SampleStream(const ObjectiveContext& context, Draw draw) : context_(context), draw_(std::move(draw)) {}

  // Begins with the first sample of a batch of the epoch; the order depends on the recipe's seed and the epoch.
  void start(const std::vector<int64_t>& samples, int64_t epoch, int64_t batch) {
    const Recipe& recipe = context_.recipe;
    const int workers =
        recipe.data.workers > 0 ? static_cast<int>(recipe.data.workers) : std::max(1, context_.threads / 2);
    drawn_.reset();
    order_ = data::epoch_order(samples, true, recipe.seed, epoch);
    const int64_t size = std::ssize(order_), first = std::min(size, batch * recipe.batch_size);
    drawn_.emplace(
        static_cast<size_t>(size - first),
        [this, epoch, first](size_t i) { return draw_(order_[static_cast<size_t>(first) + i], epoch); },
        data::PrefetchOptions{.threads = workers,
                              .in_flight = static_cast<size_t>(recipe.data.in_flight * recipe.batch_size)});
  }
  std::optional<Drawn> next() { return drawn_->next(); }  // none behind the last one

 private:
  const ObjectiveContext& context_;
  Draw draw_;
  std::vector<int64_t> order_;                         // indices of the samples in this epoch
  std::optional<data::OrderedPrefetch<Drawn>> drawn_;  // destroyed first: its threads use the others
};

}  // namespace vitrail::train
