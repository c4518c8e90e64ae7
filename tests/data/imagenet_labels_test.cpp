// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/imagenet_labels.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "tests/support/paths.h"

namespace vitrail::data {
namespace {

TEST(ImagenetLabels, ThereAre1000ClassesWithDistinctIds) {
  const auto ids = imagenet_wordnet_ids();
  EXPECT_EQ(imagenet_class_names().size(), 1000u);
  EXPECT_EQ(std::set<std::string_view>(ids.begin(), ids.end()).size(), 1000u);
  EXPECT_EQ(imagenet_class_names()[281], "tabby, tabby cat");
  EXPECT_EQ(ids[281], "n02123045");
}

// The list distributed with Caffe's models, an independent source.
TEST(ImagenetLabels, AgreeWithThePublishedSynsetWords) {
  VITRAIL_NEED_ASSETS(root);
  std::ifstream file(root / "imagenet/synset_words.txt");
  std::string line;
  size_t index = 0;
  for (; std::getline(file, line); ++index) {
    ASSERT_LT(index, 1000u);
    const std::string ours =
        std::string(imagenet_wordnet_ids()[index]) + " " + std::string(imagenet_class_names()[index]);
    EXPECT_EQ(ours, line) << "class " << index;
  }
  EXPECT_EQ(index, 1000u);
}

}  // namespace
}  // namespace vitrail::data
