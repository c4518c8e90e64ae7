// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training augmentation: from a decoded picture to a normalised model input, every draw a function of its key.
//
// The steps stand in the order in which they run, which is that of timm's training transform:
//   crop (random-resized, padded, or the evaluation transform's) → flip → affine → policy → colour jitter →
//   normalise → erasing.
// Pixels up to the normalisation are 8 bits and equal to what Pillow makes of them.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/image/transform.h"

namespace vitrail::data {

// A rectangle of random area and aspect ratio, resized to the input size: torchvision's RandomResizedCrop (Szegedy et
// al. 2015, "Going deeper with convolutions").
struct RandomResizedCrop {
  std::array<double, 2> scale{0.08, 1.0};                            // of the picture's area, in (0, 1]
  std::array<double, 2> ratio{3.0 / 4.0, 4.0 / 3.0};                 // width / height, above 0
  std::vector<image::Filter> interpolation{image::Filter::bicubic};  // one is drawn where there are several
};

// Zeros (in 8 bits) or the mirrored picture around it, and a window of the input size at random: torchvision's
// RandomCrop(size, padding).  The picture is resized to the input size first, both edges, where it has another.
struct PaddedCrop {
  enum class Mode { constant, reflect };
  int64_t padding = 4;         // pixels of the model's input, at least 0
  Mode mode = Mode::constant;  // constant: filled with AugmentOptions::fill; reflect: the edge itself is not repeated
};

// Rotation about the centre, shift and scale in one resampling: torchvision's RandomAffine.
struct RandomAffine {
  double degrees = 0;                 // the angle is uniform in ±degrees
  std::array<double, 2> shift{0, 0};  // uniform in ± this share of width and height, rounded to whole pixels
  std::array<double, 2> scale{1, 1};  // uniform in between
  image::Filter interpolation = image::Filter::bilinear;  // nearest, bilinear or bicubic
};

// torchvision's ColorJitter: factors uniform in [max(0, 1 − x), 1 + x], hue in ±hue of the circle, in random order.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;  // hue at most 0.5
  double probability = 1;
};

// Zhong et al. 2017, in timm's form: after the normalisation, rectangles are overwritten.
struct RandomErasing {
  enum class Mode {
    constant,
    colour,
    pixel
  };  // 0; one N(0, 1) a channel; N(0, 1) everywhere (timm: const, rand, pixel)
  double probability = 0;
  Mode mode = Mode::pixel;
  std::array<double, 2> area{0.02, 1.0 / 3.0};  // of the whole, divided by the number of rectangles
  std::array<double, 2> ratio{0.3, 1.0 / 0.3};  // height / width
  std::array<int64_t, 2> count{1, 1};           // rectangles, drawn in between
};

enum class Flip {
  none,
  random,     // with probability ½
  alternate,  // every second epoch, beginning with a keyed coin (Jordan 2024, "94% on CIFAR-10 in 3.29 seconds")
};
Flip flip_from_name(const std::string& name);  // "none", "random", "alternate"

// Everything is off by default but what the evaluation transform does.
struct AugmentOptions {
  std::optional<RandomResizedCrop> random_resized_crop;  // at most one of these two
  std::optional<PaddedCrop> padded_crop;
  Flip flip = Flip::none;
  std::optional<RandomAffine> affine;
  // A policy by name (auto_augment_internal.h): "rand-m9-mstd0.5-inc1", "randaugment-n2-m9", "autoaugment-cifar10",
  // "autoaugment-imagenet", "trivialaugment".  Empty: none.
  std::string policy{};
  double policy_share = 1;  // of the pictures that the policy is applied to
  // Of a policy's geometric operations: nearest, bilinear, bicubic; one is drawn where there are several.  Empty: the
  // reference's default (timm: bilinear or bicubic, torchvision: nearest).
  std::vector<image::Filter> policy_interpolation{};
  std::optional<ColorJitter> color_jitter;
  RandomErasing erasing{};
  // What comes in where a policy, an affine map or padding uncovers nothing: one value a channel, or one for all, 0 to
  // 255.  Empty: timm's policies fill with the mean (as timm does), all else with 0.
  std::vector<int> fill{};
  // From this epoch on (counted from 0) affine, policy, colour jitter and erasing are off; crop and flip stay.
  // Negative: never.
  int64_t off_epoch = -1;
  // How many views a picture has: epoch e draws as epoch e mod views does, so that what is known of a view (a teacher's
  // answer) serves again.  0: as many as epochs.
  int64_t views = 0;
  // So many epochs show views; those after them show new pictures, drawn as epochs from `views` on.  Negative: all.
  // Where new pictures follow, views are plain (as from off_epoch on): whatever is done to the new ones, the same views
  // serve them.
  int64_t view_epochs = -1;

  bool strong(int64_t epoch) const {
    if (views > 0 && epoch < view_epochs) return false;
    return off_epoch < 0 || epoch < off_epoch;
  }
  // What the pictures of this epoch look like, from 0 to 2 · views − 1: equal numbers, equal pictures.  Negative where
  // pictures are drawn for the epoch.
  int64_t view_of(int64_t epoch) const {
    if (views <= 0 || (view_epochs >= 0 && epoch >= view_epochs)) return -1;
    return epoch % views + (view_epochs >= 0 || strong(epoch) ? 0 : views);
  }
  // The epoch that this one draws as.
  int64_t drawn_as(int64_t epoch) const {
    if (views <= 0) return epoch;
    return view_of(epoch) >= 0 ? epoch % views : views + epoch - view_epochs;
  }
};

// Which augmentation a picture gets.  Equal keys give equal results.
struct AugmentKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t sample = 0;  // index in the dataset
  int64_t repeat = 0;  // which of a repeated augmentation's copies
};

// The steps ready to run.  const and thread-safe.
class Augmentation {
 public:
  // `transform` gives the size, mean, std and interpolation, and the crop where no other is asked for.
  // Throws Error naming the option that is out of its range.
  Augmentation(const AugmentOptions& options, const image::EvalTransform& transform);
  ~Augmentation();
  Augmentation(Augmentation&&) noexcept;

  // The picture before the normalisation, 8 bits, of the input size.
  image::Image picture(const image::Image& source, const AugmentKey& key) const;
  // The same normalised and with erased rectangles, to out [channels, height, width].
  void apply_into(const image::Image& source, const AugmentKey& key, float* out) const;

 private:
  struct Steps;
  std::unique_ptr<const Steps> steps_;
};

}  // namespace vitrail::data
