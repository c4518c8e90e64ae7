// SPDX-License-Identifier: Apache-2.0
// Values that follow from a configuration, and its limits.
#include "vitrail/models/derived_config_internal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/layer_configs_internal.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;
using testing::error_of;

TEST(LayerConfigs, TheDropPathRateGrowsLinearlyToTheWholeRate) {
  Config config;
  config.depth = 5;
  config.drop_path_rate = 0.4;
  for (int64_t layer = 0; layer < 5; ++layer) {
    EXPECT_DOUBLE_EQ(block_config(config, layer).drop_path, 0.1 * static_cast<double>(layer));
  }
  config.depth = 1;
  EXPECT_EQ(block_config(config, 0).drop_path, 0);
}

TEST(LayerConfigs, DropoutRatesAreThoseOfTheirPlaces) {
  Config config;
  config.attn_drop_rate = 0.1;
  config.proj_drop_rate = 0.2;
  const nn::BlockConfig block = block_config(config, 3);
  EXPECT_EQ(block.attention.attn_drop, 0.1);
  EXPECT_EQ(block.attention.proj_drop, 0.2);
  EXPECT_EQ(block.mlp_drop, 0.2);
}

TEST(LayerConfigs, GridsAreOfRowsAndColumns) {
  Config config;
  config.img_size = {32, 48};
  config.patch_size = {8, 4};
  EXPECT_EQ(own_grid(config), (std::array<int64_t, 2>{4, 12}));
}

TEST(DerivedConfig, TheHiddenWidthOfTheMlpIsItsFamilys) {
  Config config;
  config.embed_dim = 100;
  config.mlp_ratio = 4;
  EXPECT_EQ(mlp_hidden_of(config), 400);
  config.mlp_ratio = 2.999;
  EXPECT_EQ(mlp_hidden_of(config), 299);  // rounded down
  config.mlp_ratio = 4;
  config.mlp_layer = MlpLayer::swiglu;  // 2/3 of it, rounded up to a multiple of 8
  EXPECT_EQ(mlp_hidden_of(config), 272);
  config.mlp_layer = MlpLayer::swiglu_packed;
  EXPECT_EQ(mlp_hidden_of(config), 200);
  config.mlp_layer = MlpLayer::mlp;
  config.swiglu_mlp = true;
  EXPECT_EQ(mlp_hidden_of(config), 400);
  config.swiglu_align_to = 64;
  EXPECT_EQ(mlp_hidden_of(config), 448);
  config.mlp_ratio = 4.48;
  EXPECT_EQ(mlp_hidden_of(config), 448);  // already a multiple
  config.mlp_hidden = 50;
  EXPECT_EQ(mlp_hidden_of(config), 50);
  EXPECT_EQ(pool_mlp_hidden_of(config), 50);
  config.attn_pool_mlp_ratio = 2;
  EXPECT_EQ(pool_mlp_hidden_of(config), 200);
}

// Each field at its limits, and one beyond.
TEST(DerivedConfig, FieldsHaveLimits) {
  const auto problem = [](const std::function<void(Config&)>& change) {
    Config config;
    change(config);
    try {
      checked(config);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  struct Field {
    const char* name;
    std::function<void(Config&, int64_t)> set;
    int64_t min, max;
  };
  const std::vector<Field> fields{{"img_size",
                                   [](Config& c, int64_t v) {
                                     c.img_size = {224, v};
                                   },
                                   1, 65536},
                                  {"img_size",
                                   [](Config& c, int64_t v) {
                                     c.img_size = {v, 224};
                                   },
                                   1, 65536},
                                  {"patch_size",
                                   [](Config& c, int64_t v) {
                                     c.patch_size = {v, 16};
                                   },
                                   1, 65536},
                                  {"in_chans", [](Config& c, int64_t v) { c.in_chans = v; }, 1, 1024},
                                  {"num_classes", [](Config& c, int64_t v) { c.num_classes = v; }, 0, int64_t{1} << 26},
                                  {"embed_dim",
                                   [](Config& c, int64_t v) {
                                     c.embed_dim = v;
                                     c.mlp_hidden = 1;
                                   },
                                   1, 1 << 20},
                                  {"depth", [](Config& c, int64_t v) { c.depth = v; }, 0, 4096},
                                  {"num_heads", [](Config& c, int64_t v) { c.num_heads = v; }, 1, 1 << 20},
                                  {"head_dim", [](Config& c, int64_t v) { c.head_dim = v; }, 1, 1 << 20},
                                  {"mlp_ratio", [](Config& c, int64_t v) { c.mlp_hidden = v; }, 1, 1 << 24},
                                  {"reg_tokens", [](Config& c, int64_t v) { c.reg_tokens = v; }, 0, 4096},
                                  {"head_hidden", [](Config& c, int64_t v) { c.head_hidden = v; }, 0, 1 << 20},
                                  {"swiglu_align_to", [](Config& c, int64_t v) { c.swiglu_align_to = v; }, 0, 1 << 20}};
  for (const Field& field : fields) {
    for (const int64_t value : {field.min, field.max})
      EXPECT_EQ(problem([&](Config& c) { field.set(c, value); }), "") << field.name << value;
    for (const int64_t value : {field.min - 1, field.max + 1}) {
      const std::string message = problem([&](Config& c) { field.set(c, value); });
      EXPECT_TRUE(message.starts_with(field.name)) << message;
      EXPECT_TRUE(testing::contains(message, str("a value from ", field.min, " to ", field.max))) << message;
    }
  }
  EXPECT_EQ(problem([](Config& c) { c.norm_eps = 0; }), "");
  for (const double eps : {-1e-6, 1.0}) EXPECT_NE(problem([&](Config& c) { c.norm_eps = eps; }), "") << eps;
  EXPECT_EQ(problem([](Config& c) { c.patch_drop_rate = 0.99; }), "");
  for (const double rate : {-0.1, 1.0, 2.5}) {
    EXPECT_TRUE(problem([&](Config& c) {
                  c.patch_drop_rate = rate;
                }).starts_with("patch_drop_rate: expected a dropout probability in [0, 1), got "))
        << rate;
  }
  // Products with them would overflow.
  for (const double ratio : {1e308, -1e308, std::nan("")}) {
    const std::string limits = str(": expected a number from 0 to 16777216, got ", ratio);
    EXPECT_EQ(problem([&](Config& c) { c.mlp_ratio = ratio; }), "mlp_ratio" + limits);
    EXPECT_EQ(problem([&](Config& c) { c.attn_pool_mlp_ratio = ratio, c.global_pool = GlobalPool::map; }),
              "attn_pool_mlp_ratio" + limits);
  }
  EXPECT_ERROR(problem([](Config& c) { c.swiglu_mlp = true, c.swiglu_align_to = INT64_MAX; }), "swiglu_align_to",
               "9223372036854775807");
}

TEST(DerivedConfig, CombinationsThatNoModelHasAreErrors) {
  const auto fails = [](const char* name, const std::function<void(Config&)>& change) {
    Config config;
    change(config);
    const std::string message = error_of([&] { checked(config); });
    EXPECT_TRUE(message.starts_with(name)) << message;
  };
  fails("global_pool", [](Config& c) { c.class_token = false; });
  fails("global_pool", [](Config& c) { c.class_token = false, c.global_pool = GlobalPool::token_avg; });
  fails("dist_token", [](Config& c) { c.dist_token = true, c.global_pool = GlobalPool::avg; });
  fails("pool_include_prefix", [](Config& c) { c.pool_include_prefix = true; });
  fails("attn_pool_dim", [](Config& c) { c.attn_pool_dim = 8; });
  fails("use_rel_pos_bias", [](Config& c) { c.use_rel_pos_bias = true, c.reg_tokens = 1; });
  fails("use_rel_pos_bias", [](Config& c) { c.use_shared_rel_pos_bias = true, c.dist_token = true; });
  fails("patch_drop_rate", [](Config& c) { c.use_rel_pos_bias = true, c.patch_drop_rate = 0.1; });
  fails("use_rot_pos_emb", [](Config& c) { c.use_rot_pos_emb = true, c.qk_norm = true; });
  fails("rope_temperature", [](Config& c) { c.use_rot_pos_emb = true, c.rope_temperature = 0; });
  fails("rope_temperature", [](Config& c) { c.use_rot_pos_emb = true, c.rope_temperature = 1e39; });
  fails("rope_grid_offset", [](Config& c) { c.use_rot_pos_emb = true, c.rope_grid_offset = NAN; });
  fails("rope_periods", [](Config& c) { c.use_rot_pos_emb = true, c.rope_periods = {INFINITY}; });
  fails("qk_scale", [](Config& c) { c.qk_scale = -INFINITY; });
  fails("init_values", [](Config& c) { c.init_values = NAN; });
  fails("ref_feat_shape", [](Config& c) { c.use_rot_pos_emb = true, c.ref_feat_shape = {{16, 0}}; });
  fails("rope_periods", [](Config& c) { c.use_rot_pos_emb = true, c.rope_periods = {1, 0}; });
  fails("pos_embed", [](Config& c) { c.pos_embed = PositionEmbedding::sincos2d; });
  fails("weight_init", [](Config& c) { c.weight_init = "kaiming"; });
}

}  // namespace
}  // namespace vitrail::models
