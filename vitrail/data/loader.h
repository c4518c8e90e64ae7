// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches for training and validation, made ahead of the model by threads of their own.
//
// What a batch holds is a function of (seed, epoch, step) alone: not of the threads, not of where an epoch was begun,
// and not of the number of ranks (K ranks of b see together what one process of K · b sees).
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vitrail/data/augment.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/mixup.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

struct Batch {
  Tensor images;                 // [b, C, H, W] f32, normalised
  Tensor labels;                 // [b] i64
  Tensor targets;                // [b, classes] f32 in the epochs that mix, otherwise undefined
  std::vector<int64_t> samples;  // [b] indices in the dataset
  std::vector<int64_t> places;   // [b] where each stands in the step's batch of all ranks
  int64_t view = -1;             // AugmentOptions::view_of the epoch; negative where pictures are mixed, too
  std::vector<int64_t> skipped;  // unreadable samples that had a place in this batch
};

// What becomes of a picture that cannot be read.
enum class Unreadable {
  error,      // next() throws the error that names it
  replace,    // another sample, drawn by the key of the place, stands in; needs a readable one in 100 draws
  leave_out,  // the batch is that much shorter; not together with mixing
};

struct LoaderOptions {
  int64_t batch_size = 64;  // of this process; even when there are several ranks
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  int threads = 1;                // that decode and augment, at least 1
  int64_t in_flight = 3;          // batches being made or waiting, at least 1: this bounds the memory
  bool shuffle = true;            // a permutation per (seed, epoch); otherwise the order of `subset` or the dataset
  bool drop_last = true;          // whether a last batch that is not full is left out
  int64_t repeats = 1;            // repeated augmentation (Hoffer et al. 2019, DeiT's RASampler): this many places in a
                                  // row show one sample; an epoch keeps its length, so it shows fewer samples
  std::vector<int64_t> subset{};  // the samples to use; empty: all
  int64_t channels = 3;           // of the dataset's pictures (DatasetOptions::decode): 1 or 3
  image::EvalTransform transform{};         // size, mean, std; the whole transform where nothing is augmented
  std::optional<AugmentOptions> augment{};  // nothing: the evaluation transform, bit for bit
  MixupOptions mix{};
  Unreadable unreadable = Unreadable::error;
};

// What validation asks for on the same transform: in order, nothing augmented or mixed, the last batch kept, unreadable
// pictures left out where training replaces them.  The subset stays as it is.
LoaderOptions evaluation_options(LoaderOptions training);

class Loader {
 public:
  // Throws Error: a global batch larger than the samples while drop_last, a sample outside the dataset, an option out
  // of its range.  Nothing is read before start().
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();

  // Begins an epoch at a step, at once and without replaying what came before.  May be called at any time; what was
  // under way is dropped.
  void start(int64_t epoch, int64_t first_step = 0);
  // The next batch, nothing at the epoch's end.  With several ranks and a last batch that is not full, ranks get
  // unequal parts of it (empty ones too: images [0, C, H, W]), but all the same number of steps.
  std::optional<Batch> next();

  int64_t steps_per_epoch() const;
  int64_t samples_per_epoch() const;  // of all ranks, incomplete batch and repeats counted
  double waited_seconds() const;      // that next() has waited for its batch so far, over all epochs
  const LoaderOptions& options() const;

 private:
  struct Epoch;
  std::unique_ptr<const class BatchBuilder> maker_;
  std::unique_ptr<Epoch> epoch_;
  double waited_ = 0;
};

// The same dataset with its pictures kept in memory as they are first decoded, until `limit_bytes` of pixels are kept;
// those beyond are decoded each time.  Loaders that share the object share the pictures (training and hold-out of one
// split, all epochs).  Thread-safe.
std::shared_ptr<const Dataset> cache_decoded(std::shared_ptr<const Dataset> dataset, int64_t limit_bytes);

// A split into training and held-out samples, the latter stratified: each class gives in proportion to its size
// (remainders by the largest fraction, ties by class index), its members chosen by the key.  Both lists are sorted.
struct HoldoutSplit {
  std::vector<int64_t> train, held_out;
};
// Throws Error unless 0 ≤ held_out < dataset size.
HoldoutSplit holdout_split(const Dataset& dataset, int64_t held_out, uint64_t seed);

}  // namespace vitrail::data
