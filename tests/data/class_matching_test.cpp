// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/class_matching_internal.h"

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

const std::vector<std::string> kLabels{"tabby, tabby cat",   "crane",           "golden retriever", "crane", "maillot",
                                       "maillot, tank suit", "jaguar, panther", "cougar, panther"};
const std::vector<std::string> kIds{"n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08"};

ClassMatch match(const std::vector<std::string>& names) { return match_classes("set", names, kLabels, kIds); }

TEST(ClassMatching, AcceptsIdsLabelsAndSynonyms) {
  const ClassMatch found = match({"N04", "Tabby Cat", "tabby", "tabby, tabby cat", "golden_retriever", "tank suit"});
  EXPECT_TRUE(found.matched);
  EXPECT_EQ(found.indices, (std::vector<int64_t>{3, 0, 0, 0, 2, 5}));
}

TEST(ClassMatching, ACompleteLabelPrecedesASynonym) { EXPECT_EQ(match({"maillot"}).indices, std::vector<int64_t>{4}); }

TEST(ClassMatching, WithoutMatchIndicesFollowTheOrder) {
  const ClassMatch found = match({"bus", "car", "train"});
  EXPECT_FALSE(found.matched);
  EXPECT_EQ(found.indices, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_FALSE(match_classes("set", {"tabby"}, {}, {}).matched);
}

TEST(ClassMatching, APartialMatchIsAnErrorThatListsTheOthers) {
  const std::string message = error_of([] { match({"bus", "tabby", "car"}); });
  EXPECT_TRUE(contains(message, "2 of 3")) << message;
  EXPECT_TRUE(contains(message, "'bus', 'car'")) << message;
  std::vector<std::string> many{"tabby"};
  for (int i = 0; i < 30; ++i) many.push_back(str("other", i));
  EXPECT_TRUE(contains(error_of([&] { match(many); }), "'other19' and 10 more"));
}

TEST(ClassMatching, AnAmbiguousNameIsAnError) {
  EXPECT_TRUE(contains(error_of([] { match({"crane"}); }), "'crane' (fits 1 and 3)"));
  EXPECT_TRUE(contains(error_of([] { match({"n01", "panther"}); }), "'panther' (fits 6 and 7)"));
}

}  // namespace
}  // namespace vitrail::data
