// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vitrail/hub/hub.h"

namespace vitrail::hub {
namespace {

TEST(ModelName, IsAnOrganisationANameAndARevision) {
  const auto name = parse_name("timm/deit_tiny_patch16_224.fb_in1k@refs/pr/1");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repository, "timm/deit_tiny_patch16_224.fb_in1k");
  EXPECT_EQ(name->revision, "refs/pr/1");
  EXPECT_EQ(to_string(*name), "timm/deit_tiny_patch16_224.fb_in1k@refs/pr/1");
  for (const char* text : {"org/name", "hf-hub:org/name", "hf_hub:org/name", "hf://org/name"}) {
    ASSERT_TRUE(parse_name(text)) << text;
    EXPECT_EQ(to_string(*parse_name(text)), "org/name");
  }
}

TEST(ModelName, OtherTextIsNone) {
  for (const char* text : {"",
                           "name",
                           "/name",
                           "org/",
                           "org/name/x",
                           "./org/name",
                           "../name",
                           "org/..",
                           "org/.name",
                           "org/name.",
                           "org/na--me",
                           "org/na..me",
                           "org/na me",
                           "org/name@",
                           "org/name@../x",
                           "org/name@/x",
                           "org/name@a//b",
                           "org/name@.git",
                           "org/name@a b",
                           "https://x/y",
                           "org/na\nme"}) {
    EXPECT_FALSE(parse_name(text)) << text;
  }
  EXPECT_FALSE(parse_name("org/" + std::string(97, 'a')));
}

TEST(ModelName, APathWhoseFolderExistsIsNoName) { EXPECT_FALSE(parse_name("tmp/../etc/x")); }

}  // namespace
}  // namespace vitrail::hub
