// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/data/batch_builder_internal.h"
#include "vitrail/data/ordered_prefetch.h"

namespace vitrail::data {

// An epoch under way.  The threads work on pieces; `ring` holds the batches that pieces belong to.  Pieces of at most
// in_flight batches beyond the consumer's own are under way, hence one more place than that.
struct Loader::Epoch {
  Epoch(const BatchBuilder& maker, int64_t epoch, int64_t first_step)
      : maker(maker),
        epoch(epoch),
        step(first_step),
        pieces(maker.pieces()),
        order(epoch_order(maker.samples(), maker.options().shuffle, maker.options().seed, epoch)),
        ring(static_cast<size_t>(maker.options().in_flight + 1)),
        threads(static_cast<size_t>((maker.steps() - first_step) * pieces),
                {maker.options().threads, static_cast<size_t>(maker.options().in_flight * pieces)},
                [this, first_step](size_t, size_t index) { make(first_step, static_cast<int64_t>(index)); }) {}

  // A piece by its number since the first step.  What goes wrong inside it stays with its batch; without memory for the
  // batch there is none to stay with.
  void make(int64_t first_step, int64_t piece) {
    std::shared_ptr<BatchPieces> batch;
    try {
      batch = batch_at(first_step + piece / pieces);
    } catch (const std::exception& failure) {
      const std::lock_guard lock(mutex);
      if (problem.empty()) problem = failure.what();
    }
    if (batch) maker.make(*batch, piece % pieces, order);
  }

  std::shared_ptr<BatchPieces> batch_at(int64_t wanted) {
    const std::lock_guard lock(mutex);
    if (!problem.empty()) return nullptr;
    std::shared_ptr<BatchPieces>& place = ring[static_cast<size_t>(wanted) % ring.size()];
    if (!place) place = maker.begin(epoch, wanted);
    return place;
  }

  std::shared_ptr<BatchPieces> take(int64_t wanted) {
    const std::lock_guard lock(mutex);
    if (!problem.empty()) throw Error("loader", str("memory for batch ", wanted), problem);
    return std::move(ring[static_cast<size_t>(wanted) % ring.size()]);
  }

  const BatchBuilder& maker;
  const int64_t epoch;
  int64_t step;  // the next that the consumer gets
  const int64_t pieces;
  const std::vector<int64_t> order;
  std::mutex mutex;
  std::vector<std::shared_ptr<BatchPieces>> ring;
  std::string problem;      // why a batch could not be begun; ends the epoch
  PrefetchThreads threads;  // last: they end before what they use goes
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : maker_(std::make_unique<const BatchBuilder>(std::move(dataset), std::move(options))) {}

Loader::~Loader() = default;

void Loader::start(int64_t epoch, int64_t first_step) {
  if (epoch < 0) throw Error("loader", "an epoch of at least 0", str(epoch));
  if (first_step < 0 || first_step > maker_->steps()) {
    throw Error("loader", str("a step from 0 to ", maker_->steps()), str(first_step));
  }
  epoch_.reset();  // its threads end before new ones begin
  epoch_ = std::make_unique<Epoch>(*maker_, epoch, first_step);
}

std::optional<Batch> Loader::next() {
  if (!epoch_) throw Error("loader: start() comes before next()");
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t piece = 0; piece < epoch_->pieces; ++piece) {
    if (!epoch_->threads.wait()) return std::nullopt;
    epoch_->threads.release();
  }
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return maker_->finish(*epoch_->take(epoch_->step++));
}

int64_t Loader::steps_per_epoch() const { return maker_->steps(); }

int64_t Loader::samples_per_epoch() const {
  const LoaderOptions& options = maker_->options();
  const int64_t count = static_cast<int64_t>(maker_->samples().size());
  return options.drop_last ? maker_->steps() * options.batch_size * options.ranks : count;
}

double Loader::waited_seconds() const { return waited_; }
const LoaderOptions& Loader::options() const { return maker_->options(); }

LoaderOptions evaluation_options(LoaderOptions training) {
  training.shuffle = false;
  training.drop_last = false;
  training.repeats = 1;
  training.augment.reset();
  training.mix = {};
  if (training.unreadable == Unreadable::replace) training.unreadable = Unreadable::leave_out;
  return training;
}

}  // namespace vitrail::data
