// SPDX-License-Identifier: Apache-2.0
// Several labels in a column of a CSV list: separated by blanks, in lists, in several rows.
#include "vitrail/data/datasets/csv_labels_internal.h"

#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

class CsvLabelColumns : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const DatasetOptions& options = {.split = "."}) {
    messages_.clear();
    write_file(csv_, text);
    const Warnings warnings;
    auto dataset = open_dataset(csv_, options);
    messages_ = warnings.messages;
    return dataset;
  }
  // A list of these values in a column.
  static std::string list(const std::string& column, const Names& values) {
    std::string text = "file," + column + "\n";
    for (size_t i = 0; i < values.size(); ++i) text += str(i, ".png,\"", values[i], "\"\n");
    return text;
  }
  const fs::path csv_ = testing::scratch_folder() / "l.csv";
  Names messages_;
};

// fastai's own export of PASCAL VOC, and Kaggle's of the Amazon.
TEST_F(CsvLabelColumns, MayBeSeparatedByBlanks) {
  const auto pascal = open("fname,labels,is_valid\na.png,horse person,True\nb.png,car,False\nc.png,person,False\n");
  ASSERT_TRUE(pascal->is_multi_label());
  EXPECT_EQ(pascal->class_names(), (Names{"car", "horse", "person"}));
  EXPECT_EQ(pascal->labels(0), (Labels{1, 2}));
  EXPECT_EQ(messages_, Names{csv_.string() +
                             ": the labels of the column labels are separated by blanks, as in 'horse person'; class "
                             "names with blanks belong in a column called label"});
  const auto amazon = open("image_name,tags\na,haze primary\nb,agriculture clear primary water\nc,clear primary\n");
  ASSERT_TRUE(amazon->is_multi_label());
  EXPECT_EQ(amazon->class_names(), (Names{"agriculture", "clear", "haze", "primary", "water"}));
  EXPECT_TRUE(open(list("classes", {"cat dog", "dog", "cat"}))->is_multi_label());
  EXPECT_EQ(open(list("labels", {"3 0", "2", "0"}))->labels(0), (Labels{0, 3}));
}

TEST_F(CsvLabelColumns, AreClassNamesWithBlanksWhereThatIsUncertain) {
  for (const Names& values : {Names{"crane bird", "crane machine", "dog"},
                              {"polar bear", "brown bear", "bear"},
                              {"good apple", "bad apple"},
                              {"crane bird"},
                              {"red car", "red van", "blue car"}}) {
    EXPECT_FALSE(open(list("labels", values))->is_multi_label()) << values[0];
    ASSERT_EQ(messages_.size(), 1u) << values[0];
    EXPECT_TRUE(contains(messages_[0], " is one class; several labels are written as \"")) << messages_[0];
    const auto label = open(list("label", values));
    EXPECT_EQ(label->class_names().size(), values.size());
    EXPECT_TRUE(messages_.empty()) << "a column of one label";
  }
  open(list("tags", {"crane bird", "dog"}));
  EXPECT_EQ(messages_,
            Names{csv_.string() + ": in the column tags 'crane bird' is one class; several labels are written as "
                                  "\"crane|bird\""});
  open(list("Target", {"16 0", "5 2"}));
  EXPECT_TRUE(contains(messages_.at(0), "in the column Target '16 0' is one class"));
}

TEST_F(CsvLabelColumns, AreThoseThatTheModelHas) {
  const std::string text = list("labels", {"crane bird", "dog"});
  const DatasetOptions several{.labels = {"bird", "crane", "dog"}, .multi_label = true};
  EXPECT_EQ(open(text, several)->labels(0), (Labels{0, 1}));
  const DatasetOptions one{.labels = {"crane bird", "bird", "crane", "dog"}};
  EXPECT_EQ(open(text, one)->label(0), 0);
  EXPECT_EQ(open(text, {.labels = one.labels, .multi_label = false})->label(1), 3);
  EXPECT_TRUE(messages_.empty());
  EXPECT_TRUE(contains(error_of([&] { open(text, {.labels = {"wolf", "cat"}}); }), "'crane bird', 'dog'"));
}

TEST_F(CsvLabelColumns, MayBeListsOfPython) {
  for (const Names& values : {Names{"['a', 'b']", "['b']", "[]"},
                              {"['a' 'b']", "['b']", ""},
                              {"{a,b}", "{b}", "{}"},
                              {"(\"\"a\"\", \"\"b\"\")", "(\"\"b\"\",)", "()"},
                              {"[a, b]", "[b]", ""}}) {
    for (const char* column : {"labels", "label"}) {
      const auto dataset = open(list(column, values));
      ASSERT_TRUE(dataset->is_multi_label()) << values[0];
      EXPECT_EQ(dataset->class_names(), (Names{"a", "b"})) << values[0];
      EXPECT_EQ(dataset->labels(0), (Labels{0, 1})) << values[0];
      EXPECT_EQ(dataset->labels(1), Labels{1}) << values[0];
      EXPECT_TRUE(dataset->labels(2).empty()) << values[0];
    }
  }
  EXPECT_EQ(open(list("labels", {"[0, 3]", "[1]"}))->labels(0), (Labels{0, 3}));
  EXPECT_EQ(open(list("labels", {"[0 3]", "[1]"}))->labels(0), (Labels{0, 3}));
  EXPECT_FALSE(open(list("label", {"[unknown]", "cat"}))->is_multi_label()) << "a name";
  EXPECT_FALSE(open(list("label", {"[a]", "[b]"}))->is_multi_label()) << "names";
  for (const char* other : {"cat", "['cat', 'do"}) {
    EXPECT_TRUE(contains(error_of([&] {
                           open(list("labels", {"['a', 'b']", other}));
                         }),
                         "l.csv: expected lists of labels in all rows or in none, got '['"))
        << other;
  }
}

TEST(CsvListItems, AreWithoutQuotes) {
  for (const auto& [text, items] :
       {std::pair<std::string, Names>{"['tench, Tinca tinca', 'b']", {"tench, Tinca tinca", "b"}},
        {"[\"it's\", 'a\\'b']", {"it's", "a'b"}},
        {"[crane bird, dog ,]", {"crane bird", "dog"}},
        {"['a'\n 'b']", {"a", "b"}},
        {"[ 0  12 ]", {"0", "12"}},
        {"['open", {}},
        {"['open]", {"open"}},
        {"[,]", {}},
        {"[]", {}},
        {"a", {}}}) {
    EXPECT_EQ(csv_list_items(text), items) << text;
  }
}

// Open Images has a row for each label of an image.
TEST_F(CsvLabelColumns, OfSeveralRowsAreJoined) {
  const DatasetOptions model{.labels = {"a", "b", "c"}, .multi_label = true};
  const auto dataset = open("file,label\nx.png,c\ny.png,b\nx.png,a\nz.png,\ny.png,b\n", model);
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->path(2).ends_with("z.png"));
  EXPECT_EQ(dataset->labels(0), (Labels{0, 2}));
  EXPECT_EQ(dataset->labels(1), Labels{1});
  EXPECT_TRUE(dataset->labels(2).empty());
  EXPECT_EQ(open("x.png,a|b\nx.png,c\n")->labels(0), (Labels{0, 1, 2}));
  EXPECT_EQ(open("file,a,b\nx.png,1,0\nx.png,0,1\n")->labels(0), (Labels{0, 1}));
  EXPECT_TRUE(messages_.empty());
}

}  // namespace
}  // namespace vitrail::data
