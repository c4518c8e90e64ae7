// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a loader's batches are made, piece by piece; inside vitrail/data only.
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/data/sampler_internal.h"

namespace vitrail::data {

// A batch under way.  Its pieces are written by several threads, each to its own places.
struct BatchPieces {
  int64_t epoch = 0, step = 0;
  StepShare share;
  Batch batch;
  std::vector<uint8_t> left_out;              // [b], by place: nothing was written there
  std::vector<std::vector<int64_t>> skipped;  // by piece
  std::vector<std::exception_ptr> failures;   // by piece
};

// What stays the same over all epochs.  const and thread-safe.
class BatchBuilder {
 public:
  BatchBuilder(std::shared_ptr<const Dataset> dataset, LoaderOptions options);  // errors as Loader's

  const LoaderOptions& options() const { return options_; }
  const std::vector<int64_t>& samples() const { return samples_; }
  int64_t steps() const;   // an epoch
  int64_t pieces() const;  // a batch

  std::shared_ptr<BatchPieces> begin(int64_t epoch, int64_t step) const;
  // Makes one piece; what it throws is kept in the batch's failures.
  void make(BatchPieces& batch, int64_t piece, const std::vector<int64_t>& order) const;
  // All pieces made: throws the first failure, or gives the batch without the places left out.
  Batch finish(BatchPieces& pieces) const;

 private:
  struct Source;  // a decoded picture, kept for a repeated augmentation's next place

  void make_pairs(BatchPieces& batch, int64_t piece, const std::vector<int64_t>& order) const;
  void make_place(BatchPieces& batch, int64_t i, int64_t piece, const std::vector<int64_t>& order,
                  Source& source) const;
  bool read(BatchPieces& batch, int64_t place, int64_t piece, const std::vector<int64_t>& order, Source& source) const;
  void mix(BatchPieces& batch, int64_t i, int64_t partner) const;
  bool decode(int64_t sample, Source& source) const;

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::vector<int64_t> samples_;
  std::optional<Augmentation> augmentation_;
  std::array<int64_t, 2> size_;  // of the pictures made: height, width
};

}  // namespace vitrail::data
