// SPDX-License-Identifier: Apache-2.0
// Signs of drawn operations: both with probability 1/2, as in timm and torchvision.
#include <cmath>
#include <map>

#include "tests/data/support.h"
#include "vitrail/data/augment/auto_augment_internal.h"

namespace vitrail::data {
namespace {

struct Signs {
  int64_t negative = 0, positive = 0;
};

// Counts the arguments of each operation below and above `middle`.
std::map<ImageOp, Signs> signs_of(const std::string& name, double middle) {
  const auto policy = policy_from_name(name);
  std::map<ImageOp, Signs> signs;
  for (uint64_t i = 0; i < 20000; ++i) {
    RandomStream random(random_key("signs", i));
    for (const OpCall& call : policy->draw(random, 32, 32)) {
      signs[call.op].negative += call.argument < middle;
      signs[call.op].positive += call.argument > middle;
    }
  }
  return signs;
}

// Within 5 standard deviations of one half.
void expect_both_signs(const Signs& signs, const char* what) {
  const auto total = static_cast<double>(signs.negative + signs.positive);
  ASSERT_GT(total, 500) << what;
  EXPECT_NEAR(static_cast<double>(signs.negative), total / 2, 2.5 * std::sqrt(total)) << what;
}

constexpr ImageOp kGeometric[]{ImageOp::rotate, ImageOp::shear_x, ImageOp::shear_y, ImageOp::translate_x,
                               ImageOp::translate_y};
constexpr ImageOp kEnhancements[]{ImageOp::color, ImageOp::contrast, ImageOp::brightness, ImageOp::sharpness};

TEST(AugmentSigns, GeometricOperationsGoBothWays) {
  for (const char* policy :
       {"rand-m9-n2-p1", "rand-m9-n2-p1-inc1", "randaugment-n2-m9", "trivialaugment", "autoaugment-cifar10"}) {
    const auto signs = signs_of(policy, 0);
    for (const ImageOp op : kGeometric) {
      const bool used = std::string(policy) != "autoaugment-cifar10" || op == ImageOp::rotate ||
                        op == ImageOp::shear_y || op == ImageOp::translate_x || op == ImageOp::translate_y;
      if (used) expect_both_signs(signs.at(op), name_of(op));
    }
  }
}

TEST(AugmentSigns, EnhancementsOfIncreasingPoliciesGoBothWays) {
  const auto signs = signs_of("rand-m5-n2-p1-inc1", 1);
  for (const ImageOp op : kEnhancements) expect_both_signs(signs.at(op), name_of(op));
}

}  // namespace
}  // namespace vitrail::data
