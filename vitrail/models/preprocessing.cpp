// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/preprocessing.h"

#include <array>

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

struct Preset {
  const char* name;
  std::vector<double> mean, std;
  const char* interpolation;
  double crop_pct;
};

// Mean and standard deviation of the datasets as in their reference training code.  crop_pct is timm's default for
// ImageNet, and 1 for small images.
const std::array<Preset, 4>& presets() {
  static const std::array<Preset, 4> table{{
      {"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "bicubic", 0.875},
      {"inception", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "bicubic", 0.9},
      {"cifar10", {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}, "bicubic", 1.0},
      {"mnist", {0.1307}, {0.3081}, "bilinear", 1.0},
  }};
  return table;
}

}  // namespace

std::vector<std::string> Preprocessing::missing() const {
  std::vector<std::string> names;
  if (!mean) names.push_back("--mean");
  if (!std) names.push_back("--std");
  if (!interpolation) names.push_back("--interpolation");
  if (rule == ResizeRule::timm && !crop_pct) names.push_back("--crop-pct");
  if (!input_size) names.push_back("--image-size");
  return names;
}

void apply_preset(const std::string& preset, Preprocessing& preprocessing) {
  for (const Preset& row : presets()) {
    if (preset != row.name) continue;
    preprocessing.mean = row.mean;
    preprocessing.std = row.std;
    if (!preprocessing.interpolation) preprocessing.interpolation = row.interpolation;
    if (!preprocessing.crop_pct) preprocessing.crop_pct = row.crop_pct;
    return;
  }
  throw Error("--preset", "imagenet, inception, cifar10 or mnist", "'" + preset + "'");
}

}  // namespace vitrail::models
