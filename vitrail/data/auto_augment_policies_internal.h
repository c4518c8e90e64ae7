// SPDX-License-Identifier: Apache-2.0
#pragma once
// The families of policies that policy_from_name (auto_augment_internal.h) chooses among, and what they share; inside
// vitrail/data only.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vitrail/data/auto_augment_internal.h"

namespace vitrail::data {

using Filters = std::vector<image::Filter>;

std::unique_ptr<AugmentPolicy> timm_rand_augment(const std::string& name, const Filters& filters);
std::unique_ptr<AugmentPolicy> torchvision_rand_augment(const std::string& name, const Filters& filters);
std::unique_ptr<AugmentPolicy> trivial_augment(const std::string& name, const Filters& filters);
std::unique_ptr<AugmentPolicy> auto_augment(const std::string& name, const Filters& filters);

// The sections of a policy's name after the first, "m9-mstd0.5-inc1" → {m: 9, mstd: 0.5, inc: 1}.  Throws Error for a
// key that is not among `known`, given twice, or without a number of at least 0.
std::map<std::string, double> sections_of(const std::string& name, const std::vector<std::string>& known);

// The value of a section as a whole number; throws Error when it is none from `least` to `most`.
int64_t whole_section(const std::string& name, const std::string& key, double value, int64_t least, int64_t most);

// An operation's argument (auto_augment_internal.h) at timm's magnitude / 10: from 0 to 1, beyond with mmax above 10.
// sign: 1 or −1.
double timm_argument(ImageOp op, double level, double sign, bool increasing, int64_t width, int64_t height);

// How far the operations of a policy of torchvision's go at its highest magnitude.
struct TorchvisionRanges {
  double shear, rotate, enhance;
  double translate;  // pixels; 0: 150/331 of the width or height (AutoAugment's 150 pixels on 331-pixel pictures)
  int posterized;    // bits that go
};
inline constexpr TorchvisionRanges kTorchvisionRanges{0.3, 30, 0.9, 0, 4};          // AutoAugment, RandAugment
inline constexpr TorchvisionRanges kTorchvisionWideRanges{0.99, 135, 0.99, 32, 6};  // TrivialAugmentWide

struct Strength {
  int64_t bins, bin;  // the magnitude's bin, from 0 (weakest) to bins − 1
};

// An operation's argument (auto_augment_internal.h) at this strength.  sign: 1 or −1.
double torchvision_argument(ImageOp op, const TorchvisionRanges& ranges, Strength strength, double sign, int64_t width,
                            int64_t height);
bool is_signed(ImageOp op);  // whether torchvision draws a sign for it

// A whole number below `count`.
int64_t below(RandomStream& random, int64_t count);
bool coin(RandomStream& random);
image::Filter pick(RandomStream& random, const Filters& filters);

}  // namespace vitrail::data
