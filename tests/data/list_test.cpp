// SPDX-License-Identifier: Apache-2.0
// Sets listed in CSV files: columns, labels and splits.
#include "tests/data/support.h"
#include "vitrail/data/datasets/list_columns_internal.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

class Lists : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const DatasetOptions& options = {},
                                const std::string& columns = "") const {
    write_file(csv_, text);
    return read_manifest(csv_, {.columns = parse_columns(columns)})->open(options);
  }
  std::string refusal(const std::string& text, const DatasetOptions& options = {},
                      const std::string& columns = "") const {
    return error_of([&] { open(text, options, columns); });
  }
  // The sizes of the splits.
  Names sizes(const std::string& text, const std::string& columns = "") const {
    write_file(csv_, text);
    const auto manifest = read_manifest(csv_, {.columns = parse_columns(columns)});
    Names found;
    for (const std::string& split : manifest->splits())
      found.push_back(split + str(" ", manifest->open({.split = split})->size()));
    return found;
  }
  const fs::path csv_ = testing::scratch_folder() / "l.csv";
};

TEST(ListNumbers, AreWrittenAsSpreadsheetsDo) {
  const std::pair<const char*, int64_t> integers[] = {{"3", 3},  {"-3", -3}, {"+3", 3},      {" 3 ", 3}, {"3,00", 3},
                                                      {"3.", 3}, {"-0", 0},  {"3E+02", 300}, {"007", 7}, {"0.0", 0}};
  for (const auto& [text, value] : integers) EXPECT_EQ(list_integer(text), value) << text;
  for (const char* text : {"", " ", "x", "3 4", "3x", "inf", "nan", "0x10", "1,234,5", "--1", "1e", "a3", "0.5", "1e-3",
                           "1e999", "9007199254740994"})
    EXPECT_FALSE(list_integer(text)) << text;
  EXPECT_EQ(list_integer("9007199254740992"), int64_t{1} << 53);
  for (const char* text : {"1", "1.0", "1,0", "True", " true ", "+1"}) EXPECT_EQ(list_indicator(text), true) << text;
  for (const char* text : {"0", "0.0", "FALSE", "-0"}) EXPECT_EQ(list_indicator(text), false) << text;
  for (const char* text : {"", "2", "-1", "yes", "0.5"}) EXPECT_EQ(list_indicator(text), std::nullopt) << text;
}

TEST(ListLabels, AreWithoutBlanksAndQuotes) {
  for (const auto& [text, items] :
       {std::pair<std::string, Names>{"['tench, Tinca tinca', 'b']", {"tench, Tinca tinca", "b"}},
        {"[\"it's\", b]", {"it's", "b"}},
        {"a , ,b's", {"a", "b's"}},
        {"[0, 3]", {"0", "3"}},
        {"[,]", {}},
        {"", {}}})
    EXPECT_EQ(labels_in(text, ','), items) << text;
}

TEST(Columns, AreNamedByAnOption) {
  const Columns columns = parse_columns("file=a b,label=c,split=.,separator=blank");
  EXPECT_EQ(columns.file, "a b");
  EXPECT_EQ(columns.label, "c");
  EXPECT_EQ(columns.split, ".");
  EXPECT_EQ(columns.separator, " ");
  EXPECT_EQ(parse_columns("separator=comma").separator, ",");
  EXPECT_EQ(parse_columns("separator=semicolon").separator, ";");
  EXPECT_EQ(parse_columns("").file, "");
  for (const char* text : {"x", "file", "file=", "name=x", "separator=ab", "file=a,,label=b"})
    EXPECT_THROW(parse_columns(text), Error) << text;
}

TEST_F(Lists, ColumnsAreFoundByTheirNames) {
  for (const std::string name : {"file", "filename", "File_Name", "fname", "filepath", "filepaths", "file path", "path",
                                 " IMAGE ", "image_path", "image name", "image_id"}) {
    EXPECT_TRUE(open("n,label," + name + "\n0,cat,a.png\n")->path(0).ends_with("/a.png")) << name;
  }
  for (const std::string name :
       {"label", "Class", "class_name", "target", "category", "class id", "labels", "tags", "classes", "categories"}) {
    EXPECT_EQ(open("n,file," + name + "\n0,a.png,x\n1,b.png,y\n")->class_names(), (Names{"x", "y"})) << name;
    EXPECT_EQ(open("n,file," + name + "\n0,a.png,x;y\n")->is_multi_label(), name.ends_with("s") && name != "Class")
        << name;
  }
  EXPECT_EQ(open("file,class_index\na.png,7\n", {.num_classes = 8})->label(0), 7);
  EXPECT_EQ(open("file,class_index,label\na.png,7,x\n")->class_names(), Names{"x"}) << "names precede indices";
  EXPECT_EQ(open("cat,image,id,dog,split\n0,a.png,17,1,train\n", {.split = "."})->class_names(), (Names{"cat", "dog"}));
}

TEST_F(Lists, OtherColumnsAreAnErrorThatNamesTheOption) {
  const std::string where = csv_.string() + ": expected ";
  EXPECT_EQ(refusal("photo,species\na.png,cat\n"),
            where +
                "a header with columns called file and label, or rows of an image and its label (or --columns "
                "file=NAME,label=NAME), got these columns: 'photo', 'species'");
  EXPECT_EQ(refusal("file,age,species\na.png,3,cat\n"),
            where +
                "a column of classes called label, class, class_name, class_index, target or category (or --columns "
                "label=NAME), got these columns: 'file', 'age', 'species'");
  EXPECT_EQ(refusal("photo,label\na.png,cat\n"),
            where +
                "a column of images called file, filename, path or image (or --columns file=NAME), got these "
                "columns: 'photo', 'label'");
  EXPECT_EQ(refusal("file,label,class\na.png,0,cat\n"),
            where + "one column of labels (or --columns label=NAME), got these columns: 'file', 'label', 'class'");
  EXPECT_EQ(refusal("file,label\na.png,cat\n", {}, "label=breed"),
            where + "the column breed (or --columns label=NAME), got these columns: 'file', 'label'");
  for (const char* rows : {"file,cat,dog\na.png,0,2\n", "file,cat,dog\na.png,0\n", "file,cat\na.png,1\n"})
    EXPECT_TRUE(contains(refusal(rows), "a column of classes called label")) << rows;
}

TEST_F(Lists, ColumnsMayBeSaid) {
  EXPECT_EQ(open("photo,species\na.png,cat\nb.png,dog\n", {}, "file=photo,label=species")->label(1), 1);
  EXPECT_EQ(open("cat,a\ndog,b\n", {}, "file=2,label=1")->label(1), 1);
  EXPECT_EQ(open("file,label,class\na.png,0,cat\n", {}, "label=class")->class_names(), Names{"cat"});
  EXPECT_EQ(sizes("file,label,usage\na.png,cat,Training\nb.png,dog,test\n", "split=usage"),
            (Names{"test 1", "train 1"}));
  EXPECT_EQ(
      open("file,label,use\na.png,cat,PublicTest\nb.png,dog,test\n", {.split = "PublicTest"}, "split=use")->size(), 1);
  EXPECT_EQ(open("file,tags\na.png,haze primary\nb.png,clear\n", {}, "separator=blank")->labels(0), (Labels{1, 2}));
}

TEST(Columns, AreOfListsAlone) {
  const fs::path root = testing::scratch_folder(), idx = root / "images-idx3";
  place_images(root, {"cat/0.png"});
  write_file(idx, "x");
  const auto refusal = [](const fs::path& path) {
    return error_of([&] { read_manifest(path, {.columns = {.label = "breed"}}); });
  };
  const std::string expected =
      ": expected a .csv, .tsv or .jsonl, or a folder with metadata.csv or .jsonl, which have columns, got a ";
  EXPECT_EQ(refusal(root), root.string() + expected + "folder of other files");
  EXPECT_EQ(refusal(idx), idx.string() + expected + "file named otherwise");
}

// Folders called so would be as many classes.
TEST_F(Lists, NumbersAreNamesOfClasses) {
  const auto ids = open("file,label\na.png,20000\nb.png,40000\n");
  EXPECT_EQ(ids->class_names(), (Names{"20000", "40000"}));
  EXPECT_EQ(ids->label(1), 1);
  EXPECT_EQ(open("a.png,10\nb.png,9\nc.png,9.0\nd.png,+9\n")->class_names(), (Names{"9", "10"}));
  EXPECT_EQ(open("a.png,10\nb.png,9\n", {.num_classes = 12})->label(0), 10) << "or of their indices in a model";
  for (const char* other : {"1.5", "-1", "1e-3", "16 0", "\"3,0\""}) {
    EXPECT_TRUE(contains(refusal(str("a.png,1\nb.png,", other, "\n")), "l.csv:2: expected one class (several are "))
        << other;
  }
}

// A model of 5004 classes would have 5002 without an image.
TEST_F(Lists, IndicesNumberTheClassesFromZeroOrAreNames) {
  for (const char* column : {"class_index", "class_id", "label"}) {
    const auto ids = open(str("file,", column, "\na.png,5003\nb.png,1001\nc.png,5003.0\n"));
    EXPECT_EQ(ids->class_names(), (Names{"1001", "5003"})) << column;
    EXPECT_EQ(ids->label(0), 1);
    EXPECT_EQ(ids->label(2), 1);
    const auto from_one = open(str("file,", column, "\na.png,2\nb.png,1\nc.png,10\n"));
    EXPECT_EQ(from_one->class_names(), (Names{"1", "2", "10"})) << column;
  }
  const std::string splits = "file,class_index,split\na.png,0,train\nb.png,2,train\nc.png,1,test\nd.png,,test\n";
  EXPECT_EQ(open(splits, {.split = "train"})->label(1), 2) << "the test split has the class between";
}

// A model that was trained on ids has them as names.
TEST_F(Lists, IndicesAreThoseOfAModelUnlessItsNamesAreNumbers) {
  const std::string text = "file,class_index\na.png,2\nb.png,10\n";
  EXPECT_EQ(open(text, {.num_classes = 11})->label(1), 10);
  EXPECT_EQ(open(text, {.labels = {"1", "2", "10"}})->label(1), 2);
  EXPECT_EQ(open("file,class_index\na.png,0\nb.png,2\n", {.labels = {"1", "2", "10"}})->label(1), 2) << "0 is no name";
  for (const Names& labels : {Names{"a", "b", "10"}, Names{"1", "2", "3"}, Names{}}) {
    EXPECT_TRUE(contains(refusal(text, {.labels = labels, .num_classes = 3}),
                         "l.csv:3: expected a class index below the model's 3 classes, got 10"));
  }
}

TEST_F(Lists, SeveralLabelsMayBeListsOfPython) {
  for (const char* column : {"labels", "label"}) {
    const auto dataset = open(str("file,", column, "\na.png,\"['a', 'b']\"\nb.png,['b']\nc.png,[]\nd.png,\n"));
    ASSERT_TRUE(dataset->is_multi_label());
    EXPECT_EQ(dataset->labels(0), (Labels{0, 1}));
    EXPECT_TRUE(dataset->labels(2).empty());
  }
  EXPECT_FALSE(open("file,label\na.png,[unknown]\nb.png,cat\n")->is_multi_label());
  EXPECT_TRUE(contains(refusal("file,labels\na.png,\"['a', 'b']\"\nb.png,cat\n"),
                       "expected lists of labels in all rows or in none, got '['a', 'b']', 'cat'"));
}

TEST_F(Lists, BlanksInAColumnOfSeveralLabelsAreTold) {
  const Warnings warnings;
  EXPECT_FALSE(open("file,labels\na.png,polar bear\nb.png,bear\n")->is_multi_label());
  EXPECT_EQ(warnings.messages,
            Names{csv_.string() + ": 'polar bear' is one class; several labels are written as \"cat|dog\", or told by "
                                  "--columns separator=blank"});
  open("file,label\na.png,polar bear\nb.png,bear\n");
  open("file,labels\na.png,polar bear\n", {.labels = {"polar bear"}});
  EXPECT_EQ(warnings.messages.size(), 1u);
}

TEST_F(Lists, RowsOfSeveralLabelsAreJoined) {
  const DatasetOptions model{.labels = {"a", "b", "c"}, .multi_label = true};
  const auto dataset = open("file,label\nx.png,c\ny.png,b\nx.png,a\nz.png,\ny.png,b\n", model);
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->path(2).ends_with("z.png"));
  EXPECT_EQ(dataset->labels(0), (Labels{0, 2}));
  EXPECT_EQ(dataset->labels(1), Labels{1});
  EXPECT_TRUE(dataset->labels(2).empty());
}

TEST_F(Lists, SplitsAreInAColumnOfAKnownName) {
  const std::string rows = "\na.png,cat,TRAIN\nb.png,dog,train\nc.png,cat,valid\nd.png,cat,Test\n";
  for (const char* name : {"split", "Subset", "partition", "set", "dataset", "Data_Set", "phase"})
    EXPECT_EQ(sizes(str("file,label,", name, rows)), (Names{"test 1", "train 2", "val 1"})) << name;
  EXPECT_EQ(sizes("file,label,is_valid\na.png,cat,False\nb.png,dog,True\n"), (Names{"train 1", "val 1"}));
  EXPECT_EQ(sizes("file,label,is_train\na.png,cat,1\nb.png,dog,0\n"), (Names{"test 1", "train 1"}));
  EXPECT_EQ(sizes("file,label\na.png,train\nb.png,test\n"), Names{}) << "the column of labels";
  EXPECT_TRUE(contains(refusal("file,label,split,set\na.png,cat,train,x\n"), "expected one column of splits (or "));
}

TEST_F(Lists, SplitsInOtherColumnsAreAnErrorThatNamesTheOption) {
  for (const char* text : {"file,label,usage\na.png,cat,train\nb.png,dog,test\n", "a.png,cat,train\nb.png,dog,val\n",
                           "file,label,train\na.png,cat,1\nb.png,dog,0\n", "file,label,valid\na.png,x,True\n"}) {
    EXPECT_TRUE(
        contains(refusal(text), "(or --columns split=NAME; split=. if there is none), got splits in the column "))
        << text;
    EXPECT_GT(open(text, {}, "split=.")->size(), 0);
  }
  EXPECT_EQ(open("file,bus,train\na.png,1,0\nb.png,0,1\n")->class_names(), (Names{"bus", "train"})) << "classes";
}

TEST_F(Lists, RowsWithoutASplitAreAnError) {
  const std::string text = "file,label,split\na.png,cat,train\nb.png,dog,\nc.png,dog,vla\n";
  EXPECT_EQ(refusal(text, {.split = "train"}),
            csv_.string() +
                ":3: expected the split train, val or test (the split \".\" is all rows; --columns split=. "
                "if the column is of others), got ''");
  EXPECT_EQ(open(text, {.split = "."})->size(), 3);
  EXPECT_EQ(open(text, {}, "split=.")->size(), 3);
  EXPECT_EQ(open(text, {.split = "vla"})->size(), 1);
  EXPECT_TRUE(contains(refusal("a.png,1\n", {.split = "test"}), "a split test, got a dataset without splits"));
}

}  // namespace
}  // namespace vitrail::data
