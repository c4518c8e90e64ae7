// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/csv_layout_internal.h"

#include <cmath>

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

using Columns = std::vector<size_t>;
using Names = std::vector<std::string>;

TEST(CsvNumber, IsWrittenAsSpreadsheetsDo) {
  const std::pair<const char*, double> numbers[] = {{"3", 3},     {"-3", -3},   {"+3", 3},      {" 3.5 ", 3.5},
                                                    {"3,5", 3.5}, {"3.", 3},    {"3E+02", 300}, {"1e-1", 0.1},
                                                    {"007", 7},   {"0.0", 0.0}, {".5", 0.5}};
  for (const auto& [text, value] : numbers) EXPECT_EQ(csv_number(text), value) << text;
  for (const char* text : {"", " ", "x", "3 4", "3x", "inf", "nan", "0x10", "1,234,5", "--1", "e5", "1e", "a3"})
    EXPECT_FALSE(csv_number(text)) << text;
  EXPECT_EQ(csv_number("1e999"), HUGE_VAL);
}

TEST(CsvInteger, IsExactInADouble) {
  for (const char* text : {"0.5", "1e-3", "1e999", "9007199254740994", "x", ""})
    EXPECT_FALSE(csv_integer(text)) << text;
  EXPECT_EQ(csv_integer("9007199254740992"), int64_t{1} << 53);
  EXPECT_EQ(csv_integer("-9007199254740992"), -(int64_t{1} << 53));
  EXPECT_EQ(csv_integer("3,00"), 3);
  EXPECT_EQ(csv_integer("-0"), 0);
}

TEST(CsvIndicator, IsZeroOrOne) {
  for (const char* text : {"1", "1.0", "1,0", "True", " true ", "+1"}) EXPECT_EQ(csv_indicator(text), true) << text;
  for (const char* text : {"0", "0.0", "FALSE", "-0"}) EXPECT_EQ(csv_indicator(text), false) << text;
  for (const char* text : {"", "2", "-1", "yes", "0.5", "nan"}) EXPECT_EQ(csv_indicator(text), std::nullopt) << text;
}

CsvLayout layout_of(const std::string& text, std::optional<bool> multi_label = {}) {
  return csv_layout("x.csv", text, multi_label);
}

TEST(CsvLayout, ColumnsAreFoundByTheirNames) {
  struct Case {
    const char* text;
    bool header;
    size_t file, label;
  };
  for (const auto& [text, header, file, label] : {Case{"a.png,1\n", false, 0, 1},
                                                  {"", false, 0, 1},
                                                  {"file,label\na.png,1\n", true, 0, 1},
                                                  {"label,Image_Path\n1,a.png\n", true, 1, 0},
                                                  {"x,class,y,FILE\n0,cat,0,a.png\n", true, 3, 1},
                                                  {"path,file,target,class_id\n", true, 1, 3},
                                                  {"name,kind\na.png,cat\n", true, 0, 1},
                                                  {"a.png,cat\n", false, 0, 1},
                                                  {"x,1\n", false, 0, 1},
                                                  {"file\n", false, 0, 1}}) {
    const CsvLayout layout = layout_of(text);
    EXPECT_EQ(layout.has_header, header) << text;
    EXPECT_EQ(layout.file, file) << text;
    EXPECT_EQ(layout.label, label) << text;
    EXPECT_FALSE(layout.is_multi_label()) << text;
    EXPECT_TRUE(layout.flags.empty()) << text;
  }
}

TEST(CsvLayout, SeveralLabelsHaveTheFirstOfTheSeparators) {
  EXPECT_EQ(layout_of("a.png,x\nb.png,x|y\n").separator, '|');
  EXPECT_EQ(layout_of("file,label\na.png,x;y\n").separator, '\0') << "a name in a column of one label";
  EXPECT_EQ(layout_of("file,labels\na.png,x;y\n").separator, ';');
  EXPECT_EQ(layout_of("file,labels\na.png,\"x,y\"\n").separator, ',');
  EXPECT_EQ(layout_of("file,labels\na.png,\"x,y\"\nb.png,x;y\n").separator, ';');
  EXPECT_EQ(layout_of("file,labels\na.png,x;y\nb.png,x|y\n").separator, '|');
  EXPECT_EQ(layout_of("file,labels\na.png,x;y\n", false).separator, '\0');
  EXPECT_EQ(layout_of("file,labels\na.png,x|y\n", false).separator, '|');
  EXPECT_EQ(layout_of("file,tags\na.png,x\n").separator, '\0');
  EXPECT_EQ(layout_of("file,tags\na.png,x\n", true).separator, '|');
  EXPECT_EQ(layout_of("file,labels\na.png\nb.png,x;y\n").separator, ';') << "a short row";
}

TEST(CsvLayout, ColumnsOfZeroAndOneAreClasses) {
  const CsvLayout layout = layout_of("cat,image,id,dog,split\n0,a.png,17,1,train\n");
  EXPECT_EQ(layout.indicators, (Columns{0, 3}));
  EXPECT_EQ(layout.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(layout.file, 1u);
  EXPECT_TRUE(layout.is_multi_label());
  EXPECT_EQ(layout_of("name,cat,dog\na.png,0,1\n").indicators, (Columns{1, 2})) << "the first column is the file's";
  for (const char* text : {"name,cat\na.png,1\n", "cat,file,label,dog\n0,a.png,x,1\n"})
    EXPECT_TRUE(layout_of(text).indicators.empty()) << text;
  for (const char* text :
       {"name,cat,dog\na.png,0,2\n", "name,cat,dog\na.png,0\n", "name,cat,size\na.png,0,17\n", "name,cat,dog\n"})
    EXPECT_TRUE(contains(error_of([&] { layout_of(text); }), "got these columns: 'name', 'cat', ")) << text;
  EXPECT_EQ(layout_of("name,cat\na.png,1\n", true).indicators, Columns{1}) << "one is enough if several are asked for";
}

// A column of class indices precedes one of names.
TEST(CsvLayout, OfSeveralColumnsTheFirstOfTheKnownNamesCounts) {
  const std::vector<std::string> labels{"class_index", "class id", "label",   "Class",
                                        "class_name",  "target",   "category"},
      files{"file", "filename", "file_name", "filepath", "path", "image", "image_path", "image_id"};
  for (size_t i = 0; i + 1 < labels.size(); ++i) {
    EXPECT_EQ(layout_of("file," + labels[i + 1] + "," + labels[i] + "\na.png,1,2\n").label, 2u) << labels[i];
    EXPECT_EQ(layout_of("file," + labels[i] + "," + labels[i + 1] + "\na.png,1,2\n").label, 1u) << labels[i];
  }
  for (size_t i = 0; i + 1 < files.size(); ++i)
    EXPECT_EQ(layout_of(files[i + 1] + ",label," + files[i] + "\nb.png,1,a.png\n").file, 2u) << files[i];
}

// An age is no class.
TEST(CsvLayout, ColumnsOfUnknownNamesAreThoseThatRemain) {
  struct Case {
    const char* text;
    size_t file, label;
  };
  for (const auto& [text, file, label] : {Case{"kind,file\ncat,a.png\n", 1, 0},
                                          {"species,photo\ncat,a.png\n", 1, 0},
                                          {"photo,species\na,cat\n", 0, 1},
                                          {"a,file\n0,a.png\n", 1, 0},
                                          {",file,species,split\n0,a.png,cat,train\n", 1, 2},
                                          {"size,photo,label\n1,a.png,cat\n", 1, 2},
                                          {"id,photo,label\n1,a,cat\n", 1, 2}}) {
    const CsvLayout layout = layout_of(text);
    EXPECT_TRUE(layout.has_header) << text;
    EXPECT_EQ(layout.file, file) << text;
    EXPECT_EQ(layout.label, label) << text;
  }
  EXPECT_EQ(error_of([] { layout_of("file,age,species\na.png,3,cat\n"); }),
            "x.csv: expected a column of classes called label, class, class_name, class_index, target or category, got "
            "these columns: 'file', 'age', 'species'");
  EXPECT_EQ(error_of([] { layout_of("photo,age,species\na,3x,cat\n"); }),
            "x.csv: expected a column of images called file, path, image or filename, and one of classes called label, "
            "got these columns: 'photo', 'age', 'species'");
  EXPECT_TRUE(contains(error_of([] { layout_of("photo,age,label\na,3x,cat\n"); }), "these columns: 'photo', 'age'"));
  EXPECT_EQ(layout_of("a,file,b\n1,a.png,0\n").indicators, (Columns{0, 2})) << "classes beside a file";
  EXPECT_EQ(layout_of("a,file,b\n1,a.png,0\n").file, 1u);
}

TEST(CsvLayout, AFirstRowOfDataIsNoHeader) {
  const fs::path root = testing::scratch_folder();
  write_file(root / "a", "x");
  const auto has_header = [&](const std::string& text) {
    return csv_layout((root / "l.csv").string(), text, {}).has_header;
  };
  EXPECT_FALSE(has_header("a,cat\nb,dog\n")) << "a file";
  EXPECT_TRUE(has_header("a,label\nb,dog\n")) << "a known name";
  EXPECT_TRUE(has_header("c,cat\nb,dog\n"));
  EXPECT_FALSE(has_header("im/c,cat\nim/b,dog\n")) << "paths";
  EXPECT_FALSE(has_header("im\\c,label\nim\\b,dog\n"));
  EXPECT_TRUE(has_header("im/c,label\nb,dog\n"));
  EXPECT_TRUE(has_header("c,cat\nim/b,dog\n"));
  EXPECT_FALSE(has_header("cat,a.png\ndog,b.png\n"));
}

}  // namespace
}  // namespace vitrail::data
