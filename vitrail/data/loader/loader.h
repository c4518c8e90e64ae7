// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches for training and validation, prefetched by worker threads.
//
// A batch is a function of (seed, epoch, step).  It depends neither on the number of threads nor on the step at which
// the epoch was started.  K ranks with batch size b see together what one process with batch size K · b sees.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vitrail/data/augment/augment.h"
#include "vitrail/data/augment/mixup.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

struct Batch {
  Tensor images;                     // [b, C, H, W] f32, normalised; undefined with LoaderOptions::views
  Tensor labels;                     // [b] i64; −1 for images with several labels
  Tensor targets;                    // [b, classes] f32 in epochs with mixup or CutMix, and 0 and 1 for images with
                                     // several labels; otherwise undefined
  std::vector<int64_t> samples{};    // [b] indices in the dataset
  std::vector<int64_t> positions{};  // [b] positions in the global batch of all ranks
  int64_t view = -1;                 // AugmentOptions::view_of the epoch; negative in epochs with mixup or CutMix
  std::vector<int64_t> skipped{};    // indices of unreadable samples of this batch
  // One tensor per group of LoaderOptions::views: [count · b, C, H, W] f32, normalised.  Row v · b + i is the group's
  // view v of image i.
  std::vector<Tensor> views{};
};

// Views of one size and with the same random transforms, such as the global or the local ones of DINO's multi-crop
// (Caron et al. 2021).
struct ViewGroup {
  int64_t count = 1;              // views of an image, 1 to 64
  std::array<int64_t, 2> size{};  // height and width
  AugmentOptions augment{};       // random_resized_crop has the scale
};

// What happens with an image that cannot be read.
enum class Unreadable {
  error,      // next() throws the error, which names the image
  replace,    // a randomly drawn sample replaces it; an Error after 100 unreadable draws
  leave_out,  // the batch is smaller; not allowed with mixup or CutMix
};

struct LoaderOptions {
  int64_t batch_size = 64;  // per rank; must be even if there are several ranks
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  int threads = 1;        // worker threads that decode and augment, at least 1
  int64_t in_flight = 3;  // prefetched batches, at least 1; bounds the memory
  bool shuffle = true;    // a permutation keyed by (seed, epoch); otherwise the order of `subset` or the dataset
  bool balance = false;   // with shuffle: each class has equally many samples in an epoch, whose length is unchanged
  bool drop_last = true;  // omits an incomplete last batch
  int64_t repeats = 1;    // repeated augmentation (Hoffer et al. 2019; DeiT's RASampler): so many consecutive positions
                          // show one sample.  An epoch keeps its length, so it has fewer distinct samples
  std::vector<int64_t> subset{};            // indices of the samples to use; empty: all
  int64_t classes = 0;                      // columns of the targets of images with several labels
  int64_t channels = 3;                     // channels of the dataset's images (DatasetOptions::decode): 1 or 3
  image::EvalTransform transform{};         // size, mean and std; without `augment` the complete transform
  std::optional<AugmentOptions> augment{};  // none: the evaluation transform, bit for bit
  // Several views of each image (self-supervised pretraining), instead of `augment` and without mixup and CutMix.
  // Views are numbered through the groups, and a view has the draws of AugmentKey::view.
  std::vector<ViewGroup> views{};
  MixupOptions mix{};
  Unreadable unreadable = Unreadable::error;
};

// Options for validation with the same transform and subset: in order, without augmentation and mixing, with the last
// batch.  Unreadable images are omitted if training replaces them.
LoaderOptions evaluation_options(LoaderOptions training);

class Loader {
 public:
  // Throws Error for an option out of its range, a sample outside the dataset, or (with drop_last) fewer samples than
  // the global batch size.  Reads no image before start().
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();

  // Starts an epoch at a step without reading the samples before it.  A running epoch is cancelled.
  // Throws Error for a negative epoch or a step outside [0, steps_per_epoch()].
  void start(int64_t epoch, int64_t first_step = 0);
  // The next batch; none at the end of the epoch.  All ranks get the same number of batches.  An incomplete last batch
  // is split unevenly between ranks and may be empty for some (images [0, C, H, W]).
  std::optional<Batch> next();

  int64_t steps_per_epoch() const;
  double waited_seconds() const;  // total time that next() has waited for batches, over all epochs
  const LoaderOptions& options() const;

 private:
  struct Epoch;
  std::unique_ptr<const class BatchBuilder> builder_;
  std::unique_ptr<Epoch> epoch_;
  double waited_ = 0;
};

}  // namespace vitrail::data
