// SPDX-License-Identifier: Apache-2.0
#pragma once
// The families of policies that policy_from_name chooses from, and what they share.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/augment/auto_augment_internal.h"

namespace vitrail::data {

using Filters = std::vector<image::Filter>;

std::unique_ptr<AugmentPolicy> timm_rand_augment(const std::string& name, const Filters& filters);
std::unique_ptr<AugmentPolicy> torchvision_rand_augment(const std::string& name, const Filters& filters);
std::unique_ptr<AugmentPolicy> trivial_augment(const std::string& name, const Filters& filters);
std::unique_ptr<AugmentPolicy> auto_augment(const std::string& name, const Filters& filters);

// Parses the sections of a policy's name after the first, "m9-mstd0.5-inc1" → {m: 9, mstd: 0.5, inc: 1}.  Throws Error
// for a key that is not in `known` or repeated, or a section without a non-negative number.
std::map<std::string, double> parse_sections(const std::string& name, const std::vector<std::string>& known);

// The value of a section as an integer; throws Error unless it is one from `min` to `max`.
int64_t integer_section(const std::string& name, const std::string& key, double value, int64_t min, int64_t max);

// The argument of an operation in timm's RandAugment.  level: magnitude / 10, in [0, 1], or above 1 if mmax exceeds 10;
// sign: 1 or −1; increasing: timm's inc1 variants.
double timm_argument(ImageOp op, double level, double sign, bool increasing, int64_t width, int64_t height);

// Arguments of torchvision's operations at the highest magnitude.
struct TorchvisionRanges {
  double shear, rotate, enhance;
  double translate;  // pixels; 0: 150/331 of the width or height (AutoAugment: 150 pixels of 331-pixel images)
  int posterize;     // bits removed
};
inline constexpr TorchvisionRanges kTorchvisionRanges{0.3, 30, 0.9, 0, 4};          // AutoAugment, RandAugment
inline constexpr TorchvisionRanges kTorchvisionWideRanges{0.99, 135, 0.99, 32, 6};  // TrivialAugmentWide

struct MagnitudeBin {
  int64_t bins, bin;  // bin: 0 (weakest) to bins − 1
};

// The argument of an operation at this magnitude.  sign: 1 or −1.
double torchvision_argument(ImageOp op, const TorchvisionRanges& ranges, MagnitudeBin magnitude, double sign,
                            int64_t width, int64_t height);
bool is_signed(ImageOp op);  // whether torchvision draws a sign for it

}  // namespace vitrail::data
