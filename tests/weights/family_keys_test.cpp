// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/family_keys_internal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vitrail/weights/key_map.h"

namespace vitrail::weights {
namespace {

using Keys = std::unordered_set<std::string>;

TEST(FamilyKeys, OneKeyOfEachListMustBePresent) {
  const FamilyKeys family{"own", {{"a", "b"}, {"c"}}};
  const std::pair<Keys, bool> cases[] = {{{}, false},         {{"a"}, false},          {{"c"}, false},
                                         {{"a", "b"}, false}, {{"a", "c"}, true},      {{"b", "c"}, true},
                                         {{"c", "d"}, false}, {{"a", "b", "c"}, true}, {{"b", "c", "d", "e"}, true}};
  for (const auto& [keys, want] : cases) EXPECT_EQ(recognises(family, keys), want) << ::testing::PrintToString(keys);
  EXPECT_FALSE(recognises({"none", {}}, {"a", "b", "c"})) << "a family without keys is chosen by name";
  EXPECT_FALSE(recognises({"empty", {{}}}, {"a"}));
}

TEST(FamilyKeys, APrefixIsInFrontOfEachKey) {
  const FamilyKeys family{"own", {{"a"}, {"c"}}};
  EXPECT_TRUE(recognises(family, {"net.a", "net.c"}, "net."));
  EXPECT_FALSE(recognises(family, {"net.a", "c"}, "net."));
  EXPECT_FALSE(recognises(family, {"a", "c"}, "net."));
  EXPECT_FALSE(recognises(family, {"net.a", "net.c"}));
}

// Maps without "detect" are chosen by name.
TEST(FamilyKeys, AreThoseOfTheMapsWithKeysInTheirOrder) {
  std::vector<std::string> names = KeyMap::builtin_names(), found;
  EXPECT_EQ(std::find(names.begin(), names.end(), "ibot"), names.begin());
  for (const FamilyKeys& family : builtin_family_keys()) {
    found.push_back(family.name);
    ASSERT_FALSE(family.detect.empty()) << family.name;
    std::vector<std::string> keys;
    for (const auto& alternatives : family.detect) {
      ASSERT_FALSE(alternatives.empty()) << family.name;
      keys.push_back(alternatives.back());
    }
    EXPECT_TRUE(KeyMap::builtin(family.name).recognises(keys)) << family.name;
    keys.pop_back();
    EXPECT_FALSE(KeyMap::builtin(family.name).recognises(keys)) << family.name;
  }
  std::erase_if(names,
                [&](const std::string& name) { return std::find(found.begin(), found.end(), name) == found.end(); });
  EXPECT_EQ(found, names);
  EXPECT_LT(found.size(), KeyMap::builtin_names().size());
}

// With use_shared_relative_position_bias and without layer scales.
TEST(FamilyKeys, BeitIsKnownByItsSharedBiasToo) {
  const std::string patches = "embeddings.patch_embeddings.projection.weight", norm = "layernorm_before.weight";
  for (const std::string prefix : {"beit.", "data2vec_vision.", ""}) {
    for (const auto& [layer, table] :
         {std::pair<std::string, std::string>{"encoder.layer.0.", "encoder.relative_position_bias"},
          {"layers.0.", "shared_position_bias"}}) {
      const std::vector<std::string> keys{prefix + patches, prefix + layer + norm,
                                          prefix + table + ".relative_position_bias_table"};
      EXPECT_EQ(KeyMap::detect(keys).name(), "huggingface_beit") << keys.back();
    }
  }
}

}  // namespace
}  // namespace vitrail::weights
