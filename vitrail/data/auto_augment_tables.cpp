// SPDX-License-Identifier: Apache-2.0
// AutoAugment's policies (Cubuk et al. 2018, tables 7 and 9) as torchvision runs them.
#include <array>
#include <span>

#include "vitrail/data/auto_augment_policies_internal.h"

namespace vitrail::data {
namespace {

using enum ImageOp;

// One operation of an AutoAugment pair: with this probability, at this one of 10 magnitudes.
struct Step {
  ImageOp op;
  double probability;
  int magnitude;
};
using Pair = std::array<Step, 2>;

constexpr Pair kCifar10[]{
    {{{invert, 0.1, 0}, {contrast, 0.2, 6}}},          {{{rotate, 0.7, 2}, {translate_x, 0.3, 9}}},
    {{{sharpness, 0.8, 1}, {sharpness, 0.9, 3}}},      {{{shear_y, 0.5, 8}, {translate_y, 0.7, 9}}},
    {{{autocontrast, 0.5, 0}, {equalize, 0.9, 0}}},    {{{shear_y, 0.2, 7}, {posterize, 0.3, 7}}},
    {{{color, 0.4, 3}, {brightness, 0.6, 7}}},         {{{sharpness, 0.3, 9}, {brightness, 0.7, 9}}},
    {{{equalize, 0.6, 0}, {equalize, 0.5, 0}}},        {{{contrast, 0.6, 7}, {sharpness, 0.6, 5}}},
    {{{color, 0.7, 7}, {translate_x, 0.5, 8}}},        {{{equalize, 0.3, 0}, {autocontrast, 0.4, 0}}},
    {{{translate_y, 0.4, 3}, {sharpness, 0.2, 6}}},    {{{brightness, 0.9, 6}, {color, 0.2, 8}}},
    {{{solarize, 0.5, 2}, {invert, 0.0, 0}}},          {{{equalize, 0.2, 0}, {autocontrast, 0.6, 0}}},
    {{{equalize, 0.2, 0}, {equalize, 0.6, 0}}},        {{{color, 0.9, 9}, {equalize, 0.6, 0}}},
    {{{autocontrast, 0.8, 0}, {solarize, 0.2, 8}}},    {{{brightness, 0.1, 3}, {color, 0.7, 0}}},
    {{{solarize, 0.4, 5}, {autocontrast, 0.9, 0}}},    {{{translate_y, 0.9, 9}, {translate_y, 0.7, 9}}},
    {{{autocontrast, 0.9, 0}, {solarize, 0.8, 3}}},    {{{equalize, 0.8, 0}, {invert, 0.1, 0}}},
    {{{translate_y, 0.7, 9}, {autocontrast, 0.9, 0}}},
};

constexpr Pair kImageNet[]{
    {{{posterize, 0.4, 8}, {rotate, 0.6, 9}}},  {{{solarize, 0.6, 5}, {autocontrast, 0.6, 0}}},
    {{{equalize, 0.8, 0}, {equalize, 0.6, 0}}}, {{{posterize, 0.6, 7}, {posterize, 0.6, 6}}},
    {{{equalize, 0.4, 0}, {solarize, 0.2, 4}}}, {{{equalize, 0.4, 0}, {rotate, 0.8, 8}}},
    {{{solarize, 0.6, 3}, {equalize, 0.6, 0}}}, {{{posterize, 0.8, 5}, {equalize, 1.0, 0}}},
    {{{rotate, 0.2, 3}, {solarize, 0.6, 8}}},   {{{equalize, 0.6, 0}, {posterize, 0.4, 6}}},
    {{{rotate, 0.8, 8}, {color, 0.4, 0}}},      {{{rotate, 0.4, 9}, {equalize, 0.6, 0}}},
    {{{equalize, 0.0, 0}, {equalize, 0.8, 0}}}, {{{invert, 0.6, 0}, {equalize, 1.0, 0}}},
    {{{color, 0.6, 4}, {contrast, 1.0, 8}}},    {{{rotate, 0.8, 8}, {color, 1.0, 2}}},
    {{{color, 0.8, 8}, {solarize, 0.8, 7}}},    {{{sharpness, 0.4, 7}, {invert, 0.6, 0}}},
    {{{shear_x, 0.6, 5}, {equalize, 1.0, 0}}},  {{{color, 0.4, 0}, {equalize, 0.6, 0}}},
    {{{equalize, 0.4, 0}, {solarize, 0.2, 4}}}, {{{solarize, 0.6, 5}, {autocontrast, 0.6, 0}}},
    {{{invert, 0.6, 0}, {equalize, 1.0, 0}}},   {{{color, 0.6, 4}, {contrast, 1.0, 8}}},
    {{{equalize, 0.8, 0}, {equalize, 0.6, 0}}},
};

class AutoAugment : public AugmentPolicy {
 public:
  AutoAugment(std::span<const Pair> pairs, const Filters& filters) : pairs_(pairs), filters_(filters) {
    if (filters_.empty()) filters_ = {image::Filter::nearest};
  }

  std::vector<OpCall> draw(RandomStream& random, int64_t width, int64_t height) const override {
    std::vector<OpCall> calls;
    for (const Step& step : pairs_[below(random, static_cast<int64_t>(pairs_.size()))]) {
      const bool chosen = random.uniform() < step.probability;
      const double sign = coin(random) && is_signed(step.op) ? -1.0 : 1.0;
      if (!chosen) continue;
      const double argument =
          torchvision_argument(step.op, kTorchvisionRanges, {10, step.magnitude}, sign, width, height);
      calls.push_back({step.op, argument, pick(random, filters_)});
    }
    return calls;
  }

  bool fills_with_mean() const override { return false; }

 private:
  std::span<const Pair> pairs_;
  Filters filters_;
};

}  // namespace

std::unique_ptr<AugmentPolicy> auto_augment(const std::string& name, const Filters& filters) {
  const bool cifar = name == "autoaugment-cifar10";
  return std::make_unique<AutoAugment>(cifar ? std::span<const Pair>(kCifar10) : std::span<const Pair>(kImageNet),
                                       filters);
}

}  // namespace vitrail::data
