// SPDX-License-Identifier: Apache-2.0
#pragma once
// Augmentation policies: which picture operations, how strong, drawn at random.
//
//   rand-m9-mstd0.5-inc1   timm's RandAugment (Cubuk et al. 2019): m magnitude 0–10 (default 10), n operations (2), p
//   the
//                          probability of each (0.5), mstd the magnitude's standard deviation (0; above 100: uniform in
//                          [0, m]), mmax the upper end of the magnitude instead of 10, inc1 the variants that get
//                          stronger with the magnitude, tweights timm's weighted choice without replacement
//   randaugment-n2-m9-b31  torchvision's: n operations, magnitude m of b bins
//   autoaugment-cifar10    torchvision's AutoAugment (Cubuk et al. 2018): one of 25 pairs of operations
//   autoaugment-imagenet
//   trivialaugment-b31     torchvision's TrivialAugmentWide (Müller & Hutter 2021): one operation, any strength
//
// What follows the name may be left out.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/base/random.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/image.h"

namespace vitrail::data {

enum class ImageOp {
  identity,
  autocontrast,
  equalize,
  invert,
  rotate,        // argument: degrees, counter-clockwise
  posterize,     // bits that are kept
  solarize,      // threshold
  solarize_add,  // what is added below 128
  color,         // this and the next three: the factor of the enhancement
  contrast,
  brightness,
  sharpness,
  shear_x,  // the matrix's off-diagonal element
  shear_y,
  translate_x,  // pixels from which the picture comes: positive moves it to the left, or up
  translate_y,
};
const char* name_of(ImageOp op);

struct OpCall {
  ImageOp op = ImageOp::identity;
  double argument = 0;
  image::Filter filter = image::Filter::nearest;  // of rotate, shear and translate
};

void apply(const OpCall& call, image::Image& image, const image::Fill& fill);

// const and thread-safe.
class AugmentPolicy {
 public:
  virtual ~AugmentPolicy() = default;
  // The operations for a picture of this size, in their order.
  virtual std::vector<OpCall> draw(RandomStream& random, int64_t width, int64_t height) const = 0;
  // Whether what the operations uncover is filled with the model's mean unless something else is asked for (timm), or
  // with black (torchvision).
  virtual bool fills_with_mean() const = 0;
};

// `filters`: those of the geometric operations, one drawn for each; empty: the reference's default (timm: bilinear or
// bicubic, torchvision: nearest).  Throws Error for an unknown name or section and for values out of range.
std::unique_ptr<AugmentPolicy> policy_from_name(const std::string& name,
                                                const std::vector<image::Filter>& filters = {});

}  // namespace vitrail::data
