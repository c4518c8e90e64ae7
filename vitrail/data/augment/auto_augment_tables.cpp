// SPDX-License-Identifier: Apache-2.0
// The policies of AutoAugment (Cubuk et al. 2018, tables 7 and 9) as torchvision applies them.
#include <array>
#include <span>

#include "vitrail/data/augment/auto_augment_policies_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::data {
namespace {

using enum ImageOp;

// One of the two operations of a sub-policy.  magnitude: bin 0 to 9.
struct SubPolicyOp {
  ImageOp op;
  double probability;
  int magnitude;
};
using SubPolicy = std::array<SubPolicyOp, 2>;

constexpr SubPolicy kCifar10[]{
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

constexpr SubPolicy kImageNet[]{
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
  AutoAugment(std::span<const SubPolicy> sub_policies, const Filters& filters)
      : sub_policies_(sub_policies), filters_(filters) {
    if (filters_.empty()) filters_ = {image::Filter::nearest};
  }

  std::vector<OpCall> draw(RandomStream& random, int64_t width, int64_t height) const override {
    std::vector<OpCall> calls;
    const SubPolicy& sub_policy = sub_policies_[random_index(random, static_cast<int64_t>(sub_policies_.size()))];
    for (const SubPolicyOp& op : sub_policy) {
      const bool applied = random.uniform() < op.probability;
      const double sign = random_coin(random) && is_signed(op.op) ? -1.0 : 1.0;
      if (!applied) continue;
      const double argument = torchvision_argument(op.op, kTorchvisionRanges, {10, op.magnitude}, sign, width, height);
      calls.push_back({op.op, argument, random_choice(random, filters_)});
    }
    return calls;
  }

  bool fills_with_mean() const override { return false; }

 private:
  std::span<const SubPolicy> sub_policies_;
  Filters filters_;
};

}  // namespace

std::unique_ptr<AugmentPolicy> auto_augment(const std::string& name, const Filters& filters) {
  const bool cifar = name == "autoaugment-cifar10";
  const std::span<const SubPolicy> table = cifar ? std::span<const SubPolicy>(kCifar10) : kImageNet;
  return std::make_unique<AutoAugment>(table, filters);
}

}  // namespace vitrail::data
