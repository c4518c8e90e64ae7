// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the batches of a Loader in chunks, which several threads process at once.
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "vitrail/data/loader/loader.h"
#include "vitrail/data/loader/sampler_internal.h"

namespace vitrail::data {

// A batch being built.  Each chunk writes its own images; no element is written by two threads.
struct UnfinishedBatch {
  int64_t epoch = 0, step = 0;
  RankSlice slice;
  Batch batch;
  std::vector<uint8_t> omitted;               // [b]: 1 for an image that could not be read and was not replaced
  std::vector<std::vector<int64_t>> skipped;  // by chunk
  std::vector<std::exception_ptr> failures;   // by chunk
};

// Everything that is the same in all epochs.  const and thread-safe.
class BatchBuilder {
 public:
  BatchBuilder(std::shared_ptr<const Dataset> dataset, LoaderOptions options);  // errors as Loader's

  const LoaderOptions& options() const { return options_; }
  std::vector<int64_t> order(int64_t epoch) const;  // the samples of an epoch
  int64_t steps() const;                            // per epoch
  int64_t chunks() const;                           // per batch

  std::shared_ptr<UnfinishedBatch> begin(int64_t epoch, int64_t step) const;
  // Builds one chunk.  An exception is stored in the batch's failures.
  void build(UnfinishedBatch& batch, int64_t chunk, const std::vector<int64_t>& order) const;
  // After all chunks: rethrows the first failure, or returns the batch without the omitted images.
  Batch finish(UnfinishedBatch& unfinished) const;

 private:
  struct Source;  // a decoded image, kept for the next copy under repeated augmentation
  struct Views {
    int64_t first, count;         // numbers of the views
    std::array<int64_t, 2> size;  // height and width
    Augmentation augmentation;
  };

  void build_pairs(UnfinishedBatch& batch, int64_t chunk, const std::vector<int64_t>& order) const;
  void build_image(UnfinishedBatch& batch, int64_t i, int64_t chunk, const std::vector<int64_t>& order,
                   Source& source) const;
  void write_views(Batch& batch, int64_t i, const image::Image& image, AugmentKey key) const;
  void set_labels(Batch& batch, int64_t i, int64_t sample) const;
  bool read(UnfinishedBatch& batch, int64_t position, int64_t chunk, const std::vector<int64_t>& order,
            Source& source) const;
  void mix(UnfinishedBatch& batch, int64_t i, int64_t partner) const;
  bool decode(int64_t sample, Source& source) const;

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::vector<int64_t> samples_;
  std::vector<std::vector<int64_t>> classes_;  // the samples by class, if they are balanced
  std::optional<Augmentation> augmentation_;
  std::vector<Views> views_;     // by group
  std::array<int64_t, 2> size_;  // height and width of the batch's images
};

}  // namespace vitrail::data
