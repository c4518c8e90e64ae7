// SPDX-License-Identifier: Apache-2.0
// Splits that a CSV list says in columns of any name, or in flags.
#include "vitrail/data/datasets/csv_splits_internal.h"

#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;

class CsvSplitColumns : public ::testing::Test {
 protected:
  // The sizes of the splits train, val and test; 0 for none.  The third row is of val, the last one of test.
  Names sizes(const std::string& text) const {
    write_file(csv_, text);
    Names found;
    for (const std::string& split : dataset_splits(csv_))
      found.push_back(split + str(" ", open_dataset(csv_, {.split = split})->size()));
    return found;
  }
  std::string refusal(const std::string& text, const DatasetOptions& options = {}) const {
    write_file(csv_, text);
    return error_of([&] { open_dataset(csv_, options); });
  }
  std::string warning(const std::string& text) const {
    write_file(csv_, text);
    const Warnings warnings;
    open_dataset(csv_, {});
    EXPECT_LE(warnings.messages.size(), 1u);
    return warnings.messages.empty() ? "" : warnings.messages.front();
  }
  const fs::path csv_ = testing::scratch_folder() / "l.csv";
};

TEST_F(CsvSplitColumns, AreRecognisedByTheirValues) {
  for (const char* name : {"data set", "Dataset_type", "usage", "train_test", "type", "set_name", "is_train", "x"}) {
    EXPECT_EQ(sizes(str("file,label,", name, "\na.png,cat,TRAIN\nb.png,dog,train\nc.png,cat,valid\nd.png,cat,Test\n")),
              (Names{"test 1", "train 2", "val 1"}))
        << name;
  }
  EXPECT_EQ(sizes("a.png,cat,train\nb.png,dog,test\n"), (Names{"test 1", "train 1"})) << "no header";
  EXPECT_EQ(sizes("file,label,split,set\na.png,cat,0,train\nb.png,dog,3,test\n"), (Names{"test 1", "train 1"}));
  EXPECT_EQ(sizes("file,label\na.png,train\nb.png,test\n"), Names{}) << "the column of labels";
}

TEST_F(CsvSplitColumns, MayBeFlags) {
  for (const char* name : {"is_train", "is_training_img", "is_training_image", "isTrain", "train", "Training"}) {
    EXPECT_EQ(sizes(str("file,label,", name, "\na.png,cat,1\nb.png,dog,1\nc.png,cat,0\n")),
              (Names{"test 1", "train 2"}))
        << name;
  }
  EXPECT_EQ(sizes("file,label,is_valid,is_test\na.png,cat,0,0\nb.png,dog,True,False\nc.png,cat,0,1\n"),
            (Names{"test 1", "train 1", "val 1"}));
  EXPECT_EQ(sizes("file,label,train,val,test\na.png,cat,1,0,0\nb.png,dog,0,1,0\nc.png,cat,0,0,1\n"),
            (Names{"test 1", "train 1", "val 1"}));
  EXPECT_EQ(sizes("file,label,train,valid\na.png,cat,1,0\nb.png,dog,0,1\nc.png,cat,0,0\n"),
            (Names{"test 1", "train 1", "val 1"}));
  EXPECT_EQ(sizes("file,cat,dog,is_train,is_test\na.png,1,0,1,0\nb.png,0,1,0,1\n"), (Names{"test 1", "train 1"}));
  for (const char* row : {"1,1", "0,0", "1,"}) {
    EXPECT_TRUE(contains(refusal(str("file,label,is_train,is_test\na.png,cat,1,0\nb.png,dog,", row, "\n")),
                         "l.csv:3: expected the split train, val or test, as in other rows, got '"))
        << row;
  }
}

// Trains are a class of COCO.  An image may be valid.
TEST_F(CsvSplitColumns, ANameAloneMayBeAClass) {
  EXPECT_EQ(sizes("file,bus,train\na.png,1,0\nb.png,0,1\n"), Names{});
  EXPECT_EQ(open_dataset(csv_, {})->class_names(), (Names{"bus", "train"}));
  EXPECT_EQ(sizes("file,label,test\na.png,cat,17\nb.png,dog,3\n"), Names{});
  EXPECT_EQ(warning("file,label,valid\na.png,cat,True\nb.png,dog,False\n"),
            csv_.string() +
                ": the column valid is not used, although it looks like one of splits: 'False', 'True'; one "
                "called split with train, val and test is");
}

TEST_F(CsvSplitColumns, ThatAreNotUsedAreAWarning) {
  for (const char* rows :
       {"a.png,cat,train\nb.png,dog,test\nc.png,cat,\n", "a.png,cat,train\nb.png,dog,test\nc.png,cat,spare\n",
        "a.png,cat,train2017\nb.png,dog,val2017\n", "a.png,cat,train\nb.png,dog,train\n"}) {
    EXPECT_TRUE(contains(warning(str("file,label,usage\n", rows)), "the column usage is not used, although it looks"))
        << rows;
  }
  EXPECT_TRUE(contains(warning("file,label,is_test\na.png,cat,no\nb.png,dog,yes\n"),
                       "the column is_test is not used, because its values are not 0 or 1: 'no', 'yes'"));
  for (const char* rows : {"a.png,cat,red\nb.png,dog,train\n", "a.png,cat,0\nb.png,dog,1\n", "a.png,cat,\nb.png,dog\n",
                           "a.png,cat,train\nb.png,dog,test\nc.png,dog,1\nc.png,dog,2\nc.png,dog,3\nc.png,dog,4\n"})
    EXPECT_EQ(warning(str("file,label,kind\n", rows)), "") << rows;
}

TEST_F(CsvSplitColumns, ThatContradictEachOtherAreAnError) {
  const std::string rows = "\na.png,cat,train,train\nb.png,dog,test,train\nc.png,cat,test,test\n";
  EXPECT_EQ(refusal("file,label,split,set" + rows),
            csv_.string() +
                ":3: expected the same split in the columns split and set (the split \".\" is all rows), got "
                "'test', 'train'");
  EXPECT_EQ(open_dataset(csv_, {.split = "."})->size(), 3);
  EXPECT_TRUE(
      contains(refusal("file,label,one,two" + rows), "l.csv:3: expected the same split in the columns one and"));
  EXPECT_TRUE(contains(refusal("file,label,split,is_valid\na.png,cat,train,0\nb.png,dog,train,1\n"),
                       "l.csv:3: expected the same split in the columns split and is_valid"));
  EXPECT_EQ(sizes("file,label,split,is_valid\na.png,cat,train,0\nb.png,dog,val,1\nc.png,dog,test,0\n"),
            (Names{"test 1", "train 1", "val 1"}));
  EXPECT_EQ(warning("file,label,first_split,split" + rows),
            csv_.string() + ": the column first_split is not used, because split says other splits");
  EXPECT_EQ(open_dataset(csv_, {.split = "train"})->size(), 2);
}

}  // namespace
}  // namespace vitrail::data
