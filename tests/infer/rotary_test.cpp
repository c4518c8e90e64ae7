// SPDX-License-Identifier: Apache-2.0
// Rotary positions in compiled programs.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/infer/session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/elementwise.h"
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

models::VisionTransformerConfig plain_config() {
  models::VisionTransformerConfig config;
  config.img_size = {32, 32};
  config.patch_size = {8, 8};
  config.num_classes = 10;
  config.embed_dim = 64;
  config.depth = 4;
  config.num_heads = 2;
  config.mlp_ratio = 2;
  return config;
}

// Σ (got − want)² / Σ want² of the tokens in a lower precision, over random models with the same weights.
double relative_error(const models::VisionTransformerConfig& config, kernels::Precision precision) {
  double error = 0, norm = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto model = [&] {
      RandomParams random(seed);
      models::VisionTransformer result(config, ParamSource(random));
      for (const nn::NamedTensor& p : result.named_parameters()) {
        if (p.tensor.rank() < 2) continue;
        const Tensor values = Tensor::randn(p.tensor.shape(), random_key(p.name, seed));
        p.tensor.copy_(ops::mul(values, Tensor::full({1}, 0.15)));
      }
      return result;
    };
    const Tensor images = Tensor::randn({2, 3, 32, 32}, seed);
    const Request tokens{.output = Output::features, .tokens = Tokens::all};
    const Tensor want = Session(model()).run(images, tokens)[0];
    error += testing::squared_error(Session(model(), {.precision = precision}).run(images, tokens)[0], want);
    norm += testing::squared_error(want, Tensor::zeros(want.shape()));
  }
  return std::sqrt(error / norm);
}

// The rotation keeps the length of queries and keys and is computed in fp32 in every precision.
TEST(RotarySession, LowerPrecisionIsAsAccurateAsForAPlainModel) {
  models::VisionTransformerConfig eva = plain_config(), dinov3 = plain_config();
  eva.use_rot_pos_emb = dinov3.use_rot_pos_emb = true;
  dinov3.rope_type = nn::RotaryType::dinov3;
  dinov3.rope_rotate_half = true;
  for (const kernels::Precision precision : {kernels::Precision::half, kernels::Precision::int8}) {
    const double plain = relative_error(plain_config(), precision);
    EXPECT_LT(relative_error(eva, precision), 1.1 * plain) << name_of(precision);
    EXPECT_LT(relative_error(dinov3, precision), 1.1 * plain) << name_of(precision);
  }
}

TEST(RotarySession, RefusesTokenMerging) {
  const std::string message =
      testing::error_of([] { Session(testing::model_of("timm_dinov3"), {.merged_per_block = 1}); });
  EXPECT_TRUE(testing::contains(message, "rotary positions")) << message;
}

}  // namespace
}  // namespace vitrail::infer
