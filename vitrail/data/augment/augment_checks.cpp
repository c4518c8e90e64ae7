// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/augment_checks_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

void require_augment(bool holds, const std::string& option, const std::string& expected, const std::string& got) {
  if (!holds) throw Error("augment." + option, expected, got);
}

std::string text(const std::array<double, 2>& range) { return str("[", range[0], ", ", range[1], "]"); }

bool is_range(const std::array<double, 2>& range, double max) {
  return range[0] > 0 && range[0] <= range[1] && range[1] <= max;
}

bool is_fraction(double x) { return x >= 0 && x <= 1; }

void check_geometry(const AugmentOptions& options) {
  constexpr double kNoLimit = 1e6;
  require_augment(!options.random_resized_crop || !options.padded_crop, "padded_crop", "one kind of crop",
                  "random_resized_crop as well");
  if (const auto& crop = options.random_resized_crop) {
    require_augment(is_range(crop->scale, 1), "random_resized_crop.scale", "0 < low ≤ high ≤ 1", text(crop->scale));
    require_augment(is_range(crop->ratio, kNoLimit), "random_resized_crop.ratio", "0 < low ≤ high", text(crop->ratio));
    require_augment(!crop->interpolation.empty(), "random_resized_crop.interpolation", "a filter", "none");
  }
  if (const auto& crop = options.padded_crop) {
    require_augment(crop->padding >= 0 && crop->padding <= 10000, "padded_crop.padding", "0 to 10000 pixels",
                    str(crop->padding));
  }
  if (const auto& affine = options.affine) {
    require_augment(affine->degrees >= 0 && affine->degrees <= 180, "affine.degrees", "0 to 180", str(affine->degrees));
    require_augment(is_fraction(affine->shift[0]) && is_fraction(affine->shift[1]), "affine.shift",
                    "two fractions from 0 to 1", text(affine->shift));
    require_augment(is_range(affine->scale, kNoLimit), "affine.scale", "0 < low ≤ high", text(affine->scale));
    const image::Filter filter = affine->interpolation;
    require_augment(
        filter == image::Filter::nearest || filter == image::Filter::bilinear || filter == image::Filter::bicubic,
        "affine.interpolation", "nearest, bilinear or bicubic", image::name_of(filter));
  }
}

void check_policy_and_color(const AugmentOptions& options) {
  require_augment(is_fraction(options.policy_share), "policy_share", "0 to 1", str(options.policy_share));
  if (const auto& jitter = options.color_jitter) {
    for (const auto& [name, value] : {std::pair{"brightness", jitter->brightness},
                                      {"contrast", jitter->contrast},
                                      {"saturation", jitter->saturation}}) {
      require_augment(value >= 0 && value <= 100, str("color_jitter.", name), "at least 0", str(value));
    }
    require_augment(jitter->hue >= 0 && jitter->hue <= 0.5, "color_jitter.hue", "0 to 0.5", str(jitter->hue));
    require_augment(is_fraction(jitter->probability), "color_jitter.probability", "0 to 1", str(jitter->probability));
  }
  require_augment(is_fraction(options.grayscale), "grayscale", "0 to 1", str(options.grayscale));
  if (const auto& blur = options.blur) {
    require_augment(is_fraction(blur->probability), "blur.probability", "0 to 1", str(blur->probability));
    require_augment(blur->radius[0] >= 0 && blur->radius[0] <= blur->radius[1] && blur->radius[1] <= 100, "blur.radius",
                    "0 ≤ low ≤ high ≤ 100", text(blur->radius));
  }
  if (const auto& solarize = options.solarize) {
    require_augment(is_fraction(solarize->probability), "solarize.probability", "0 to 1", str(solarize->probability));
    require_augment(solarize->threshold >= 0 && solarize->threshold <= 256, "solarize.threshold", "0 to 256",
                    str(solarize->threshold));
  }
}

void check_erasing(const RandomErasing& erasing) {
  require_augment(is_fraction(erasing.probability), "erasing.probability", "0 to 1", str(erasing.probability));
  require_augment(is_range(erasing.area, 1), "erasing.area", "0 < low ≤ high ≤ 1", text(erasing.area));
  require_augment(is_range(erasing.ratio, 1e6), "erasing.ratio", "0 < low ≤ high", text(erasing.ratio));
  require_augment(erasing.count[0] >= 1 && erasing.count[0] <= erasing.count[1] && erasing.count[1] <= 1000,
                  "erasing.count", "1 ≤ low ≤ high ≤ 1000", str("[", erasing.count[0], ", ", erasing.count[1], "]"));
}

}  // namespace

void check(const AugmentOptions& options, const image::EvalTransform& transform) {
  check_geometry(options);
  check_policy_and_color(options);
  check_erasing(options.erasing);
  require_augment(options.views >= 0, "views", "at least 0", str(options.views));
  require_augment(options.fill.empty() || options.fill.size() == 1 || options.fill.size() == 3, "fill", "1 or 3 values",
                  str(options.fill.size()));
  for (const int value : options.fill) require_augment(value >= 0 && value <= 255, "fill", "0 to 255", str(value));
  require_augment(!transform.mean.empty() && transform.mean.size() != 2 && transform.mean.size() <= 3, "mean",
                  "1 or 3 values", str(transform.mean.size()));
  if ((options.random_resized_crop || options.padded_crop) && transform.processor) {
    throw Error("augment", "a timm transform (size, mean, std) for random crops", "a Hugging Face processor");
  }
  for (const int64_t size : transform.size)
    require_augment(size > 0 && size <= 1 << 16, "size", "1 to 65536", str(size));
}

}  // namespace vitrail::data
