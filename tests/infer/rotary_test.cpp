// SPDX-License-Identifier: Apache-2.0
// Rotary positions in compiled programs.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/infer/session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/rotary.h"

namespace vitrail::infer {
namespace {

class RotaryStep : public ::testing::TestWithParam<ops::RotaryPairs> {
 protected:
  RandomParams random_{1};
  nn::Linear linear_{24, 24, true, ParamSource(random_)};  // 2 heads of 4
  const Tensor x_ = Tensor::randn({2, 3, 24}, 2), table_ = ops::rotary_table(Tensor::randn({1, 2, 2, 2}, 3));
};

TEST_P(RotaryStep, EqualsTheEagerOperationAndRotatesInPlace) {
  const auto rotate = [&](const Tensor& qkv) { return ops::rotary(qkv, table_, 2, GetParam()); };
  const FunctionSession session(linear_, [&](const NamedTensors& inputs) -> NamedTensors {
    return {{"rotated", linear_.forward(rotate(linear_.forward(inputs[0].tensor)))}};
  });
  const Tensor want = linear_.forward(rotate(linear_.forward(x_)));
  EXPECT_TRUE(testing::close(session.run({{"x", x_}})[0].tensor, want, 1e-5));
  const std::string listing = session.listing({{"x", x_}});
  EXPECT_TRUE(testing::contains(listing, "rotary heads=2 %0 [2, 3, 24] → %0 [2, 3, 24]")) << listing;
}

TEST_P(RotaryStep, KeepsABufferThatIsReadAgain) {
  const auto both = [&](const Tensor& x) {
    const Tensor qkv = linear_.forward(x);
    return std::pair{ops::rotary(qkv, table_, 2, GetParam()), linear_.forward(qkv)};
  };
  const FunctionSession session(linear_, [&](const NamedTensors& inputs) -> NamedTensors {
    const auto [rotated, other] = both(inputs[0].tensor);
    return {{"rotated", rotated}, {"other", other}};
  });
  const auto [rotated, other] = both(x_);
  const NamedTensors got = session.run({{"x", x_}});
  EXPECT_TRUE(testing::close(got[0].tensor, rotated, 1e-5));
  EXPECT_TRUE(testing::close(got[1].tensor, other, 1e-5));
}

INSTANTIATE_TEST_SUITE_P(Pairs, RotaryStep, ::testing::Values(ops::RotaryPairs::halves, ops::RotaryPairs::interleaved));

TEST(RotarySession, RefusesTokenMerging) {
  const std::string message =
      testing::error_of([] { Session(testing::model_of("timm_dinov3"), {.merged_per_block = 1}); });
  EXPECT_TRUE(testing::contains(message, "rotary positions")) << message;
}

}  // namespace
}  // namespace vitrail::infer
