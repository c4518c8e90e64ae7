// SPDX-License-Identifier: Apache-2.0
// The classes of CSV lists with class indices and class names, without a model.
#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;

class CsvNames : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const DatasetOptions& options = {}) const {
    write_file(csv_, text);
    return open_dataset(csv_, options);
  }
  const fs::path csv_ = testing::scratch_folder() / "l.csv";
};

TEST_F(CsvNames, NameTheIndicesFromZero) {
  const Warnings warnings;
  for (const char* header : {"class_id,file,class_name", "class_index,file,label", "label,file,class",
                             "class id,filepaths,labels", "target,file,Category_Name"}) {
    const auto dataset = open(str(header, "\n2,a.png,dog\n0,b.png,fish\n1.0,c.png,cat\n0,d.png,fish\n"));
    EXPECT_EQ(dataset->class_names(), (Names{"fish", "cat", "dog"})) << header;
    EXPECT_EQ(dataset->label(0), 2) << header;
    EXPECT_EQ(dataset->label(2), 1) << header;
  }
  // Two classes may have one name, as ImageNet's cranes.
  EXPECT_EQ(open("file,class_id,class_name\na.png,0,crane\nb.png,1,crane\n")->class_names(), (Names{"crane", "crane"}));
  EXPECT_TRUE(warnings.messages.empty());
}

// The dataset that the list was trained with, and class folders of the same images, have the same labels.
TEST_F(CsvNames, AreThoseOfLaterDatasets) {
  const std::string text = "file,class_id,class_name\nfish/a.png,0,fish\ncat/b.png,1,cat\n";
  const DatasetOptions model{.labels = open(text)->class_names()};
  place_images(csv_.parent_path() / "folders", {"fish/a.png", "cat/b.png"});
  const Warnings warnings;
  const auto list = open(text, model), folders = open_dataset(csv_.parent_path() / "folders", model);
  EXPECT_EQ(list->label(0), 0);
  EXPECT_TRUE(folders->path(0).ends_with("cat/b.png"));
  EXPECT_EQ(folders->label(0), 1);
  EXPECT_TRUE(warnings.messages.empty());
}

TEST_F(CsvNames, AreTheClassesWhereIndicesLack) {
  for (const char* rows : {"a.png,1,dog\nb.png,2,cat\n", "a.png,0,dog\nb.png,17,cat\n"}) {
    const auto dataset = open(str("file,class_index,class_name\n", rows));
    EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"})) << rows;
    EXPECT_EQ(dataset->label(0), 1) << rows;
  }
  const auto twins = open("file,class_id,class_name\na.png,1,crane\nb.png,3,crane\n");
  EXPECT_TRUE(twins->class_names().empty()) << "one class would be two";
  EXPECT_EQ(twins->label(1), 3);
  EXPECT_TRUE(contains(error_of([&] { open("file,class_id,class_name\na.png,0,cat\nb.png,-1,none\n"); }),
                       "l.csv:3: expected a class index of at least 0, got -1"));
}

// The column "labels" may have several of an image.
TEST_F(CsvNames, OfAColumnOfLabelsMayBeOthers) {
  const auto dataset = open("file,label,labels\na.png,0,cat dog\nb.png,0,cat\nc.png,1,dog\n");
  EXPECT_EQ(dataset->label(2), 1);
  EXPECT_TRUE(dataset->class_names().empty());
}

}  // namespace
}  // namespace vitrail::data
