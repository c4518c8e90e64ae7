// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/paths.h"
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

TEST(ModelName, PartsAndRevisionsHaveALengthAndTheirCharacters) {
  for (const std::string& text :
       {"o/" + std::string(96, 'a'), std::string(96, 'a') + "/n", "o/n@" + std::string(200, 'r'), std::string("0Z/9a_"),
        std::string("_o/n_"), std::string("o/n@a_b.c/d+e-f"), std::string("o/n@0.9Zz"), std::string("o-p/n-m.x")}) {
    ASSERT_TRUE(parse_name(text)) << text;
    EXPECT_EQ(to_string(*parse_name(text)), text);
  }
  for (const std::string& text :
       {"o/" + std::string(97, 'a'), std::string(97, 'a') + "/n", "o/n@" + std::string(201, 'r'),
        std::string("-o/n"),         std::string("o-/n"),         std::string(".o/n"),
        std::string("o./n"),         std::string("o--p/n"),       std::string("o..p/n"),
        std::string("o/-n"),         std::string("o/n-"),         std::string("o@r/n"),
        std::string("o/n@r@s"),      std::string("o/n@r/"),       std::string("o/n@-r"),
        std::string("o/n@a/.b"),     std::string("o/n@a..b"),     std::string("o/n@a~"),
        std::string("o/n:m"),        std::string("o/n+m"),        std::string("o/n@a:b"),
        std::string("hf:o/n")}) {
    EXPECT_FALSE(parse_name(text)) << text;
  }
  EXPECT_EQ(to_string({"o/n", "main"}), "o/n");
  EXPECT_EQ(to_string({"o/n", "main2"}), "o/n@main2");
  EXPECT_EQ(parse_name("o/n@main")->revision, "main");
  EXPECT_EQ(parse_name("hf://o/n@v1")->revision, "v1");
  EXPECT_EQ(parse_name("hf://o/n@v1")->repository, "o/n");
  EXPECT_EQ(parse_name("o/n")->revision, "main");
}

// A path is taken for a path if its first folder exists; a mark says that it is none.
TEST(ModelName, WithAMarkIsANameBesideAFolderToo) {
  const std::filesystem::path before = std::filesystem::current_path(), folder = testing::scratch_folder();
  std::filesystem::create_directories(folder / "org");
  std::filesystem::current_path(folder);
  const auto plain = parse_name("org/name"), other = parse_name("other/name"), marked = parse_name("hf://org/name");
  std::filesystem::current_path(before);
  EXPECT_FALSE(plain);
  EXPECT_TRUE(other);
  ASSERT_TRUE(marked);
  EXPECT_EQ(marked->repository, "org/name");
}

}  // namespace
}  // namespace vitrail::hub
