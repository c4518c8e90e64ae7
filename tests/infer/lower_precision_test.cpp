// SPDX-License-Identifier: Apache-2.0
// The errors of half precision and int8 in families of models beside those of a plain Vision Transformer.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/random.h"
#include "vitrail/infer/session.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::infer {
namespace {

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

// √(Σ (got − want)² / Σ want²) in a lower precision, over random models with the same weights.
double relative_error(const models::VisionTransformerConfig& config, kernels::Precision precision,
                      const Request& request) {
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
    const Tensor want = Session(model()).run(images, request)[0];
    error += testing::squared_error(Session(model(), {.precision = precision}).run(images, request)[0], want);
    norm += testing::squared_error(want, Tensor::zeros(want.shape()));
  }
  return std::sqrt(error / norm);
}

// The rotation keeps the length of queries and keys and is computed in fp32 in every precision.
TEST(LowerPrecision, OfRotaryModelsIsAsAccurateAsOfPlainOnes) {
  const Request tokens{.output = Output::features, .features = {.tokens = Tokens::all}};
  models::VisionTransformerConfig eva = plain_config(), dinov3 = plain_config();
  eva.use_rot_pos_emb = dinov3.use_rot_pos_emb = true;
  dinov3.rope_type = nn::RotaryType::dinov3;
  dinov3.rope_rotate_half = true;
  for (const kernels::Precision precision : {kernels::Precision::half, kernels::Precision::int8}) {
    const double plain = relative_error(plain_config(), precision, tokens);
    EXPECT_LT(relative_error(eva, precision, tokens), 1.1 * plain) << name_of(precision);
    EXPECT_LT(relative_error(dinov3, precision, tokens), 1.1 * plain) << name_of(precision);
  }
}

// The query and the layers behind the attention are computed in fp32.
TEST(LowerPrecision, OfAttentionPoolingIsAsAccurateAsOfTheClassToken) {
  models::VisionTransformerConfig siglip = plain_config();
  siglip.global_pool = models::GlobalPool::map;
  models::VisionTransformerConfig coca = siglip;
  coca.pool_include_prefix = coca.attn_pool_input_norms = true;
  coca.fc_norm = true;
  coca.attn_pool_dim = 32;
  coca.attn_pool_mlp_ratio = 0;
  for (const kernels::Precision precision : {kernels::Precision::half, kernels::Precision::int8}) {
    const double plain = relative_error(plain_config(), precision, {});
    EXPECT_LT(relative_error(siglip, precision, {}), 1.1 * plain) << name_of(precision);
    EXPECT_LT(relative_error(coca, precision, {}), 1.1 * plain) << name_of(precision);
  }
}

}  // namespace
}  // namespace vitrail::infer
