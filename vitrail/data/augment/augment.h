// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training augmentation: a decoded image becomes a normalised model input.  Every random draw is a function of a key.
//
// The order of the transforms is that of timm's transforms_imagenet_train:
//   crop (random-resized, padded, or that of the evaluation transform) → flip → affine → policy → colour jitter →
//   grey → blur → solarise → normalise → erasing.
// Up to the normalisation an image has 8 bits per channel, and every transform gives Pillow's pixel values.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/image/transform.h"

namespace vitrail::data {

// torchvision's RandomResizedCrop (Szegedy et al. 2015, "Going deeper with convolutions"): a rectangle of random area
// and aspect ratio, resized to the input size.
struct RandomResizedCrop {
  std::array<double, 2> scale{0.08, 1.0};                            // fraction of the image's area, in (0, 1]
  std::array<double, 2> ratio{3.0 / 4.0, 4.0 / 3.0};                 // width / height, positive
  std::vector<image::Filter> interpolation{image::Filter::bicubic};  // if several: one is drawn per image
};

// torchvision's RandomCrop(size, padding): a random window of the input size in the padded image.  An image of another
// size is first resized to the input size, without keeping its aspect ratio.
struct PaddedCrop {
  enum class Mode { constant, reflect };
  int64_t padding = 4;         // pixels of the model's input on each side, at least 0
  Mode mode = Mode::constant;  // constant: filled with AugmentOptions::fill; reflect: mirrored, the edge not repeated
};

// torchvision's RandomAffine without shear: rotation about the centre, translation and scale in one resampling.
struct RandomAffine {
  double degrees = 0;                 // the angle is uniform in ±degrees, 0 to 180
  std::array<double, 2> shift{0, 0};  // uniform in ± this fraction of width and height, rounded to integer pixels
  std::array<double, 2> scale{1, 1};  // uniform in [low, high]; above 1 enlarges
  image::Filter interpolation = image::Filter::bilinear;  // nearest, bilinear or bicubic
};

// torchvision's ColorJitter: factors uniform in [max(0, 1 − x), 1 + x], the hue shift uniform in ±hue of the colour
// circle, the four operations in random order.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;  // hue: at most 0.5
  double probability = 1;
};

// Pillow's GaussianBlur with a standard deviation that is uniform in `radius`, in pixels of the model's input (Chen et
// al. 2020, "A simple framework for contrastive learning").
struct RandomBlur {
  double probability = 0.5;
  std::array<double, 2> radius{0.1, 2.0};  // 0 to 100
};

// Pillow's solarize: values of at least `threshold` are inverted (Grill et al. 2020, "Bootstrap your own latent").
struct RandomSolarize {
  double probability = 0.2;
  int64_t threshold = 128;  // 0 to 256
};

// Random Erasing (Zhong et al. 2017) as in timm: rectangles of the normalised image are overwritten.
struct RandomErasing {
  // timm's const (0), rand (one N(0, 1) draw per channel) and pixel (N(0, 1) per value).
  enum class Mode { constant, colour, pixel };
  double probability = 0;
  Mode mode = Mode::pixel;
  std::array<double, 2> area{0.02, 1.0 / 3.0};  // fraction of the image, divided by the number of rectangles
  std::array<double, 2> ratio{0.3, 1.0 / 0.3};  // height / width
  std::array<int64_t, 2> count{1, 1};           // number of rectangles, uniform in [low, high]
};

enum class Flip {
  none,
  random,     // with probability 1/2
  alternate,  // in every second epoch; a coin per sample decides the first (Jordan 2024, "94% on CIFAR-10 in 3.29 s")
};

// By default only the evaluation transform is applied.
struct AugmentOptions {
  std::optional<RandomResizedCrop> random_resized_crop{};  // at most one of the two crops
  std::optional<PaddedCrop> padded_crop{};
  Flip flip = Flip::none;
  std::optional<RandomAffine> affine{};
  // An augmentation policy by name: "rand-m9-mstd0.5-inc1" (timm's RandAugment), "randaugment-n2-m9" (torchvision's),
  // "autoaugment-cifar10", "autoaugment-imagenet", "trivialaugment" (docs/augmentation.md).  Empty: none.
  std::string policy{};
  double policy_share = 1;  // the fraction of images that the policy is applied to
  // Filters of the policy's geometric operations (nearest, bilinear, bicubic); if several, one is drawn per operation.
  // Empty: the reference's default (timm: bilinear or bicubic, torchvision: nearest).
  std::vector<image::Filter> policy_interpolation{};
  std::optional<ColorJitter> color_jitter{};
  double grayscale = 0;  // the fraction of images that lose their colours, by Pillow's luma
  std::optional<RandomBlur> blur{};
  std::optional<RandomSolarize> solarize{};
  RandomErasing erasing{};
  // Pixel value, 0 to 255, of the areas that a policy, an affine map or padding uncovers: one per channel, or one for
  // all.  Empty: the mean for timm's policies (as in timm), otherwise 0.
  std::vector<int> fill{};
  // First epoch (from 0) without affine, policy, colour jitter, grey, blur, solarise and erasing; crop and flip stay.
  // Negative: never.
  int64_t off_epoch = -1;
  // Number of distinct views of an image: epoch e uses the draws of epoch e mod views, so that the teacher's cached
  // logits of a view can be reused.  0: each epoch has its own draws.
  int64_t views = 0;
  // Number of epochs that reuse views; later epochs have draws of their own, numbered from `views`.  Negative: all.
  // With a limit the views have crop and flip only (as after off_epoch), so they do not depend on the other options.
  int64_t view_epochs = -1;

  // Whether the transforms behind the flip are applied in this epoch.
  bool strong(int64_t epoch) const {
    if (views > 0 && epoch < view_epochs) return false;
    return off_epoch < 0 || epoch < off_epoch;
  }
  // Index of the view that this epoch shows, 0 to 2 · views − 1: epochs with equal indices show equal images.
  // Negative if the epoch has draws of its own.
  int64_t view_of(int64_t epoch) const {
    if (views <= 0 || (view_epochs >= 0 && epoch >= view_epochs)) return -1;
    return epoch % views + (view_epochs >= 0 || strong(epoch) ? 0 : views);
  }
  // The epoch number that keys the draws of this epoch.
  int64_t draw_epoch(int64_t epoch) const {
    if (views <= 0) return epoch;
    return view_of(epoch) >= 0 ? epoch % views : views + epoch - view_epochs;
  }
};

// Identifies the random draws of one augmented image: equal keys give equal results.
struct AugmentKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t sample = 0;  // index in the dataset
  int64_t repeat = 0;  // index of the copy under repeated augmentation
  int64_t view = 0;    // index of the view, of several of an image in a batch
};

// The transforms, checked and prepared.  const and thread-safe.
class Augmentation {
 public:
  // `transform` gives size, mean, std and interpolation, and the crop if options name none.
  // Throws Error naming the option that is out of its range.
  Augmentation(const AugmentOptions& options, const image::EvalTransform& transform);
  ~Augmentation();
  Augmentation(Augmentation&&) noexcept;

  // The augmented image of the input size before normalisation, 8 bits per channel.
  image::Image augmented_image(const image::Image& source, const AugmentKey& key) const;
  // The same, normalised and erased, to out [channels, height, width].
  void apply_into(const image::Image& source, const AugmentKey& key, float* out) const;

 private:
  struct Steps;
  std::unique_ptr<const Steps> steps_;
};

}  // namespace vitrail::data
