// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/class_matching_internal.h"

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

const std::vector<std::string> kLabels{"tabby, tabby cat",   "crane",           "golden retriever", "crane", "maillot",
                                       "maillot, tank suit", "jaguar, panther", "cougar, panther"};
const std::vector<std::string> kIds{"n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08"};

ClassMatch match(const std::vector<std::string>& names) { return match_classes("set", names, kLabels, kIds); }

TEST(ClassMatching, AcceptsIdsLabelsAndSynonyms) {
  const ClassMatch found = match({"N04", "Tabby Cat", "tabby", "tabby, tabby cat", "golden_retriever", "tank suit"});
  EXPECT_EQ(found.rule, ClassMatch::Rule::labels);
  EXPECT_EQ(found.indices, (std::vector<int64_t>{3, 0, 0, 0, 2, 5}));
}

TEST(ClassMatching, ACompleteLabelPrecedesASynonym) { EXPECT_EQ(match({"maillot"}).indices, std::vector<int64_t>{4}); }

TEST(ClassMatching, WithoutMatchThereAreNoIndices) {
  EXPECT_EQ(match({"bus", "car", "train"}).rule, ClassMatch::Rule::none);
  EXPECT_EQ(match_classes("set", {"tabby"}, {}, {}).rule, ClassMatch::Rule::none);
}

TEST(ClassMatching, NumbersAreClassIndicesIfAllAreInRange) {
  const ClassMatch found = match_classes("set", {"0", "07", "11", "3"}, {}, {}, 12);
  EXPECT_EQ(found.rule, ClassMatch::Rule::indices);
  EXPECT_EQ(found.indices, (std::vector<int64_t>{0, 7, 11, 3}));
  using Names = std::vector<std::string>;
  for (const Names& names : {Names{"1", "12"}, Names{"1", "two"}, Names{"-1"}, Names{"1.0"}, Names{"+1"}, Names{"0x1"},
                             Names{"1 "}, Names{"99999999999999999999"}}) {
    EXPECT_EQ(match_classes("set", names, {}, {}, 12).rule, ClassMatch::Rule::none) << names.back();
  }
  EXPECT_EQ(match_classes("set", {"1", "2"}, {}, {}).rule, ClassMatch::Rule::none) << "no model, no range";
  EXPECT_TRUE(contains(error_of([] { match_classes("set", {"1", "01"}, {}, {}, 12); }), "'1', '01'"));
}

// A model of the folders 1 to 3 has "1" at index 0.
TEST(ClassMatching, NumbersAreComparedWithLabelsByValue) {
  using Names = std::vector<std::string>;
  const Names labels{"1", "2", "10"};
  const ClassMatch found = match_classes("set", {"01", "010"}, labels, {}, 3);
  EXPECT_EQ(found.rule, ClassMatch::Rule::labels);
  EXPECT_EQ(found.indices, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(match_classes("set", {"0", "000"}, {"000", "0"}, {}).indices, (std::vector<int64_t>{1, 0})) << "exactly";
  for (const Names& names : {Names{"0"}, Names{"1", "0"}, Names{"2", "3"}, Names{"00", "3"}}) {
    const std::string message = error_of([&] { match_classes("set", names, labels, {}, 3); });
    EXPECT_TRUE(contains(message, "labels of the model: '1', '2', '10', got ")) << message;
  }
  EXPECT_TRUE(contains(error_of([&] { match_classes("set", {"1", "01"}, labels, {}, 3); }), "'1', '01'"));
  EXPECT_EQ(match_classes("set", {"cat"}, labels, {}, 3).rule, ClassMatch::Rule::none);
  EXPECT_EQ(match_classes("set", {"01", "2"}, {"1", "cat", "10"}, {}, 3).rule, ClassMatch::Rule::indices);
}

TEST(ClassMatching, ALabelPrecedesAnIndex) {
  const ClassMatch found = match_classes("set", {"1", "2"}, {"2", "1", "0"}, {});
  EXPECT_EQ(found.rule, ClassMatch::Rule::labels);
  EXPECT_EQ(found.indices, (std::vector<int64_t>{1, 0}));
}

TEST(ClassMatching, UnicodeFormsAndCaseDoNotMatter) {
  const std::string composed = "Caf\u00c9", decomposed = "cafe\u0301";
  EXPECT_EQ(match_classes("set", {decomposed}, {"tea", composed}, {}).indices, std::vector<int64_t>{1});
  EXPECT_EQ(match_classes("set", {composed}, {"tea", decomposed}, {}).indices, std::vector<int64_t>{1});
  EXPECT_EQ(match_classes("set", {"caf\xe9"}, {"tea", "caf\xe9"}, {}).indices, std::vector<int64_t>{1});
}

TEST(ClassMatching, AnExactLabelPrecedesOneInAnotherCase) {
  EXPECT_EQ(match_classes("set", {"cat", "Cat"}, {"Cat", "cat"}, {}).indices, (std::vector<int64_t>{1, 0}));
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
