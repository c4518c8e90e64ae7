// SPDX-License-Identifier: Apache-2.0
#pragma once
// Augmentation policies: randomly drawn sequences of image operations with their strengths.
//
//   rand-m9-mstd0.5-inc1   timm's RandAugment (Cubuk et al. 2019).  m: magnitude, 0 to 10 (default 10); n: number of
//                          operations (2); p: probability of each (0.5); mstd: standard deviation of the magnitude (0;
//                          above 100: uniform in [0, m]); mmax: upper limit of the magnitude (10); inc1: operations
//                          whose strength grows with the magnitude; tweights: weighted choice without replacement
//   randaugment-n2-m9-b31  torchvision's RandAugment: n operations, magnitude bin m of b bins
//   autoaugment-cifar10    torchvision's AutoAugment (Cubuk et al. 2018): one of 25 sub-policies of two operations
//   autoaugment-imagenet
//   trivialaugment-b31     torchvision's TrivialAugmentWide (Müller & Hutter 2021): one operation, uniform strength
//
// Sections after the policy's name are optional.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/base/random.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/image.h"

namespace vitrail::data {

// The comment gives the meaning of OpCall::argument.
enum class ImageOp {
  identity,
  autocontrast,
  equalize,
  invert,
  rotate,        // degrees, counter-clockwise
  posterize,     // number of bits kept
  solarize,      // threshold
  solarize_add,  // value added to pixels below 128
  color,         // enhancement factor, for this and the next three
  contrast,
  brightness,
  sharpness,
  shear_x,  // the off-diagonal matrix element
  shear_y,
  translate_x,  // offset in pixels of the source position: a positive value moves the content left, or up
  translate_y,
};
const char* name_of(ImageOp op);

struct OpCall {
  ImageOp op = ImageOp::identity;
  double argument = 0;
  image::Filter filter = image::Filter::nearest;  // for rotate, shear and translate
};

void apply(const OpCall& call, image::Image& image, const image::Fill& fill);

// const and thread-safe.
class AugmentPolicy {
 public:
  virtual ~AugmentPolicy() = default;
  // Draws the operations for an image of this size, in the order of their application.
  virtual std::vector<OpCall> draw(RandomStream& random, int64_t width, int64_t height) const = 0;
  // The default fill of uncovered areas: the model's mean (timm), else black (torchvision).
  virtual bool fills_with_mean() const = 0;
};

// `filters` are those of the geometric operations; if several, one is drawn per operation.  Empty: the reference's
// default (timm: bilinear or bicubic, torchvision: nearest).  Throws Error for an unknown name or section, a value out
// of range, or another filter than nearest, bilinear and bicubic.
std::unique_ptr<AugmentPolicy> policy_from_name(const std::string& name,
                                                const std::vector<image::Filter>& filters = {});

}  // namespace vitrail::data
