// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/auto_augment_internal.h"

#include <array>

#include "vitrail/base/error.h"
#include "vitrail/data/augment/auto_augment_policies_internal.h"
#include "vitrail/image/enhance_internal.h"
#include "vitrail/image/point_operations_internal.h"

namespace vitrail::data {

const char* name_of(ImageOp op) {
  constexpr std::array kNames{"identity", "autocontrast", "equalize",    "invert",     "rotate",     "posterize",
                              "solarize", "solarize_add", "color",       "contrast",   "brightness", "sharpness",
                              "shear_x",  "shear_y",      "translate_x", "translate_y"};
  static_assert(kNames.size() == static_cast<size_t>(ImageOp::translate_y) + 1, "one name per ImageOp, in its order");
  return kNames[static_cast<size_t>(op)];
}

void apply(const OpCall& call, image::Image& image, const image::Fill& fill) {
  const double x = call.argument;
  const auto transform = [&](const image::AffineMatrix& matrix) { image = affine(image, matrix, call.filter, fill); };
  switch (call.op) {
    case ImageOp::identity:
      return;
    case ImageOp::autocontrast:
      return image::autocontrast(image);
    case ImageOp::equalize:
      return image::equalize(image);
    case ImageOp::invert:
      return image::invert(image);
    case ImageOp::rotate:
      image = image::rotate(image, x, call.filter, fill);
      return;
    case ImageOp::posterize:
      return image::posterize(image, static_cast<int>(x));
    case ImageOp::solarize:
      return image::solarize(image, x);
    case ImageOp::solarize_add:
      return image::solarize_add(image, static_cast<int>(x));
    case ImageOp::color:
      return image::adjust_color(image, x);
    case ImageOp::contrast:
      return image::adjust_contrast(image, x);
    case ImageOp::brightness:
      return image::adjust_brightness(image, x);
    case ImageOp::sharpness:
      return image::adjust_sharpness(image, x);
    case ImageOp::shear_x:
      return transform({1, x, 0, 0, 1, 0});
    case ImageOp::shear_y:
      return transform({1, 0, 0, x, 1, 0});
    case ImageOp::translate_x:
      return transform({1, 0, x, 0, 1, 0});
    case ImageOp::translate_y:
      return transform({1, 0, 0, 0, 1, x});
  }
}

std::unique_ptr<AugmentPolicy> policy_from_name(const std::string& name, const std::vector<image::Filter>& filters) {
  for (const image::Filter filter : filters) {
    if (filter != image::Filter::nearest && filter != image::Filter::bilinear && filter != image::Filter::bicubic) {
      throw Error("policy", "the filter nearest, bilinear or bicubic", image::name_of(filter));
    }
  }
  const std::string family = name.substr(0, name.find('-'));
  if (family == "rand") return timm_rand_augment(name, filters);
  if (family == "randaugment") return torchvision_rand_augment(name, filters);
  if (family == "trivialaugment") return trivial_augment(name, filters);
  if (name == "autoaugment-cifar10" || name == "autoaugment-imagenet") return auto_augment(name, filters);
  throw Error(
      "policy",
      "rand-…, randaugment-…, trivialaugment, autoaugment-cifar10 or autoaugment-imagenet (docs/augmentation.md)",
      "'" + name + "'");
}

}  // namespace vitrail::data
