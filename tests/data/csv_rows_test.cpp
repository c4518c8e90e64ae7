// SPDX-License-Identifier: Apache-2.0
// Rows of CSV lists that do not fit the header, and fields that look alike.
#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

class CsvRows : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const DatasetOptions& options = {}) const {
    write_file(csv_, text);
    return open_dataset(csv_, options);
  }
  std::string refusal(const std::string& text, const DatasetOptions& options = {}) const {
    return error_of([&] { open(text, options); });
  }
  const fs::path csv_ = testing::scratch_folder() / "l.csv";
};

// "bird" and "machine" would be lost, and both be the class "crane".
TEST_F(CsvRows, MoreFieldsThanTheHeaderAreAnError) {
  EXPECT_EQ(refusal("file,label\na.png,dog\nb.png,crane, bird\nc.png,crane, machine\n"),
            csv_.string() +
                ":3: expected 2 fields, as in the header (a field with the separator is written in quotes, several "
                "labels as \"cat|dog\"), got 3 fields");
  EXPECT_TRUE(contains(refusal("a.png,dog\nb.png,crane,bird\n"), "l.csv:2: expected 2 fields, as in the first row ("));
  EXPECT_TRUE(contains(refusal("file;label\na.png;dog\nb.png;a;b;c\n"), "l.csv:3: expected 2 fields"));
  EXPECT_TRUE(contains(refusal("file,label\na.png,crane,,machine\n"), "l.csv:2: expected 2 fields"));
  EXPECT_TRUE(contains(refusal("file,cat,dog\na.png,0,1\nb.png,1,0,1\n"), "l.csv:3: expected 3 fields"));
  EXPECT_TRUE(contains(refusal("file,label,split\na.png,dog,train\nb.png,crane,bird,train\n"), "l.csv:3: expected 3"));
  EXPECT_TRUE(contains(error_of([&] { dataset_splits(csv_); }), "l.csv:3: expected 3 fields"));
}

TEST_F(CsvRows, FieldsBeyondTheHeaderMayBeEmpty) {
  for (const char* text : {"file,label\na.png,dog,\nb.png,cat, ,\"\"\n", "a.png,dog\nb.png,cat,\n"}) {
    const auto dataset = open(text);
    EXPECT_EQ(dataset->size(), 2) << text;
    EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"cat", "dog"})) << text;
  }
  EXPECT_EQ(open("file,label,note\na.png,dog\nb.png,cat,x\n")->size(), 2) << "fewer, but a label";
}

TEST_F(CsvRows, AQuoteAfterBlanksBeginsAQuotedField) {
  const auto dataset = open("file, label\na.png, \"crane, bird\"\nb.png,\t\"crane, machine\" \nc.png,  \"dog\"\n");
  EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"crane, bird", "crane, machine", "dog"}));
  EXPECT_EQ(open("file\tlabel\n\"a.png\"\t \"x\ty\"\n")->class_names(), (std::vector<std::string>{"x\ty"}));
}

// Folders called 007 and 7 are two classes, too.
TEST_F(CsvRows, ANumberWithZerosIsAnotherName) {
  EXPECT_EQ(open("file,label\na.png,007\nb.png,7\n")->class_names().size(), 2u);
  EXPECT_TRUE(contains(refusal("a.png,1\nb.png,01\n", {.labels = {"1", "2"}}), "'01', '1'"));
  EXPECT_EQ(open("a.png,7\nb.png,7.0\nc.png,+7\nd.png,7.\n")->class_names(), std::vector<std::string>{"7"});
  EXPECT_EQ(open("file,class_index\na.png,7\nb.png,07\n")->class_names(), std::vector<std::string>{"7"});
}

}  // namespace
}  // namespace vitrail::data
