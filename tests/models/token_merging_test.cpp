// SPDX-License-Identifier: Apache-2.0
// Which models merge tokens.
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "tests/support/models.h"

namespace vitrail::models {
namespace {

TEST(TokenMerging, NeedsTokensWithoutPositionsInTheBlocks) {
  const auto problem = [](const char* name, int64_t per_block) {
    VisionTransformer model = testing::model_of(name);
    try {
      model.merge_tokens(per_block);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(problem("timm_token", 3), "");
  for (const char* name : {"timm_map", "timm_beit", "timm_beit_shared", "timm_dinov3", "timm_rope_mixed"}) {
    EXPECT_TRUE(problem(name, 1).starts_with("token merging: expected a model ")) << name;
    EXPECT_EQ(problem(name, 0), "") << name;
  }
}

}  // namespace
}  // namespace vitrail::models
