// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/splits_internal.h"

#include "tests/data/support.h"
#include "tests/support/errors.h"
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace {

TEST(CanonicalSplit, IgnoresCaseSeparatorsAndOneEnding) {
  const std::map<std::string, std::vector<std::string>> names{
      {"train",
       {"train", "TRAINING", "trn", "train_set", "Train-Images", "training data", "train folder", "t-r-a-i-n"}},
      {"val",
       {"val", "valid", "Validate", "validation", "dev", "development", "eval", "evaluation", "holdout", "val_split"}},
      {"test", {"test", "testing", "tst", "testset", "TEST_DATASET", "test_imgs", "test-img"}},
      {"", {"", "tests", "trained", "set", "data", "traindataset2", "train1", "testimagesset", "mytest", "test.zip"}}};
  for (const auto& [split, words] : names) {
    for (const std::string& word : words) EXPECT_EQ(canonical_split(word), split) << word;
  }
}

TEST(ResembledSplit, IsThatOfAWordOfTheName) {
  const std::pair<const char*, const char*> names[] = {{"seg_train", "train"},
                                                       {"train2017", "train"},
                                                       {"imagenet-val", "val"},
                                                       {"TestB", "test"},
                                                       {"MyTestData", "test"},
                                                       {"02 dev", "val"},
                                                       {"1Test", "test"},
                                                       {"xTRAIN", "train"},
                                                       {"latest", ""},
                                                       {"trainer", ""},
                                                       {"", ""},
                                                       {"123", ""},
                                                       {"testing-a", "test"},
                                                       {"aVal", "val"},
                                                       {"VALx", ""},
                                                       {"a_b_test", "test"},
                                                       {"TEST", "test"},
                                                       {"é_val", "val"},
                                                       {"fold1", "fold"},
                                                       {"Fold_02", "fold"},
                                                       {"folded", ""},
                                                       {"billfold", ""}};
  for (const auto& [name, split] : names) EXPECT_EQ(resembled_split(name), split) << name;
}

TEST(ChooseSplit, IsTheOneAskedForOrTheFirstDefault) {
  const auto chosen = [](const DatasetOptions& options, const std::vector<std::string>& existing) {
    return choose_split({.where = "set", .existing = existing}, options);
  };
  EXPECT_EQ(chosen({}, {"test", "train", "val"}), "test");
  EXPECT_EQ(chosen({}, {"train", "Valid"}), "Valid");
  EXPECT_EQ(chosen({}, {}), "");
  EXPECT_EQ(chosen({.split = "."}, {}), "");
  EXPECT_EQ(chosen({.split = "Training"}, {"test", "train"}), "train");
  EXPECT_EQ(chosen({.split = "other"}, {"test", "other"}), "other");
  EXPECT_EQ(chosen({.default_splits = {"dev", "test"}}, {"test", "val"}), "val");
  EXPECT_ERROR(error_of([&] { chosen({}, {"train"}); }), "set", "these splits: train");
  EXPECT_EQ(error_of([&] {
              chosen({.split = "val"}, {"test", "train"});
            }),
            "set: expected a split val, got these splits: test, train");
  EXPECT_THROW(chosen({.split = "."}, {"test"}), Error);
  EXPECT_EQ(error_of([&] {
              choose_split({"set", {"val"}, {{"Test", "none"}}}, {});
            }),
            "set: expected images that can be read in the split Test, got none");
}

TEST(ComparisonKey, ForgetsFormCaseUnderscoresAndSpacesAround) {
  EXPECT_EQ(comparison_key("  Golden_Retriever "), "golden retriever");
  EXPECT_EQ(comparison_key("_a_"), "a");
  EXPECT_EQ(comparison_key("a_ b"), "a  b");
  EXPECT_EQ(comparison_key("Cafe\u0301"), comparison_key("CAF\u00c9"));
  EXPECT_EQ(comparison_key("STRASSE"), comparison_key("straße"));
  EXPECT_EQ(comparison_key("A\xff"), "a\xff") << "bytes that are not UTF-8 stay";
  EXPECT_EQ(comparison_key(" _ "), "");
  EXPECT_EQ(composed("e\u0301"), "\u00e9");
  EXPECT_EQ(composed("E_ \xff"), "E_ \xff");
}

TEST(ClassLimit, IsTheModelsNumberOfClasses) {
  EXPECT_EQ(class_limit({}), INT64_MAX);
  EXPECT_EQ(class_limit({.labels = {"a", "b"}}), 2);
  EXPECT_EQ(class_limit({.labels = {"a", "b"}, .num_classes = 7}), 7);
  EXPECT_EQ(default_class_names(3, {}), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(default_class_names(3, {.labels = {"a"}}), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace vitrail::data
