// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/loader.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/data/loader/batch_builder_internal.h"
#include "vitrail/data/loader/ordered_prefetch.h"

namespace vitrail::data {

// An epoch in progress.  The threads process chunks; `ring` holds the unfinished batches.  At most in_flight batches
// beyond the consumer's are in progress, so the ring has in_flight + 1 slots.
struct Loader::Epoch {
  Epoch(const BatchBuilder& builder, int64_t epoch, int64_t first_step)
      : builder(builder),
        epoch(epoch),
        step(first_step),
        chunks(builder.chunks()),
        order(builder.order(epoch)),
        ring(static_cast<size_t>(builder.options().in_flight + 1)),
        threads(static_cast<size_t>((builder.steps() - first_step) * chunks),
                {builder.options().threads, static_cast<size_t>(builder.options().in_flight * chunks)},
                [this, first_step](size_t, size_t index) {
                  build(first_step, static_cast<int64_t>(index));
                  return size_t{0};  // in_flight bounds the memory
                }) {}

  // Builds the chunk with this number, counted from the first step.  An exception is stored in the chunk's batch; if
  // the batch itself cannot be allocated, in begin_error.
  void build(int64_t first_step, int64_t chunk) {
    std::shared_ptr<UnfinishedBatch> batch;
    try {
      batch = batch_at(first_step + chunk / chunks);
    } catch (const std::exception& failure) {
      const std::lock_guard lock(mutex);
      if (begin_error.empty()) begin_error = failure.what();
    }
    if (batch) builder.build(*batch, chunk % chunks, order);
  }

  std::shared_ptr<UnfinishedBatch> batch_at(int64_t index) {
    const std::lock_guard lock(mutex);
    if (!begin_error.empty()) return nullptr;
    std::shared_ptr<UnfinishedBatch>& slot = ring[static_cast<size_t>(index) % ring.size()];
    if (!slot) slot = builder.begin(epoch, index);
    return slot;
  }

  std::shared_ptr<UnfinishedBatch> take(int64_t index) {
    const std::lock_guard lock(mutex);
    if (!begin_error.empty()) throw Error("loader", str("memory for batch ", index), begin_error);
    return std::move(ring[static_cast<size_t>(index) % ring.size()]);
  }

  const BatchBuilder& builder;
  const int64_t epoch;
  int64_t step;  // the step of the next batch
  const int64_t chunks;
  const std::vector<int64_t> order;
  std::mutex mutex;
  std::vector<std::shared_ptr<UnfinishedBatch>> ring;
  std::string begin_error;  // why a batch could not be allocated; ends the epoch
  PrefetchThreads threads;  // last member: destroyed first, before the members that the threads use
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : builder_(std::make_unique<const BatchBuilder>(std::move(dataset), std::move(options))) {}

Loader::~Loader() = default;

void Loader::start(int64_t epoch, int64_t first_step) {
  if (epoch < 0) throw Error("loader", "an epoch of at least 0", str(epoch));
  if (first_step < 0 || first_step > builder_->steps()) {
    throw Error("loader", str("a step from 0 to ", builder_->steps()), str(first_step));
  }
  epoch_.reset();  // joins its threads before new ones start
  epoch_ = std::make_unique<Epoch>(*builder_, epoch, first_step);
}

std::optional<Batch> Loader::next() {
  if (!epoch_) throw Error("loader: start() comes before next()");
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t chunk = 0; chunk < epoch_->chunks; ++chunk) {
    if (!epoch_->threads.wait()) return std::nullopt;
    epoch_->threads.release();
  }
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return builder_->finish(*epoch_->take(epoch_->step++));
}

int64_t Loader::steps_per_epoch() const { return builder_->steps(); }

double Loader::waited_seconds() const { return waited_; }
const LoaderOptions& Loader::options() const { return builder_->options(); }

LoaderOptions evaluation_options(LoaderOptions training) {
  training.shuffle = false;
  training.balance = false;
  training.drop_last = false;
  training.repeats = 1;
  training.augment.reset();
  training.views.clear();
  training.mix = {};
  if (training.unreadable == Unreadable::replace) training.unreadable = Unreadable::leave_out;
  return training;
}

}  // namespace vitrail::data
