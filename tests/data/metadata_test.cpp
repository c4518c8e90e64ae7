// SPDX-License-Identifier: Apache-2.0
// Hugging Face's imagefolder, and lists of JSON objects.
#include "tests/data/support.h"
#include "vitrail/data/datasets/json_lines_internal.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

TEST(JsonLines, AreRowsOfATable) {
  JsonLinesReader reader("l",
                         "\n{\"b\": \"x\", \"a\": [1, \"y\"]}\r\n \n{\"a\": null, \"c\": 2}\n{\"b\": true, \"a\": 3}");
  for (const Names& fields : {Names{"b", "a"}, {"x", "[1,\"y\"]"}, {"", ""}, {"true", "3"}})
    EXPECT_EQ(reader.next()->fields, fields);
  EXPECT_FALSE(reader.next());
  JsonLinesReader lines("l", "\n\n{\"a\": 1}\n[1]\n");
  EXPECT_EQ(lines.next()->line, 3u);
  lines.next();
  EXPECT_EQ(error_of([&] { lines.next(); }), "l:4: expected a JSON object, got something else");
  for (const std::string& text : {std::string("{"), std::string("x"), "{\"a\": " + std::string(100, '[')})
    EXPECT_THROW(JsonLinesReader("l", text).next(), Error) << text;
}

TEST(Metadata, NamesTheImagesOfAFolderOrOfItsSplits) {
  const std::string csv = "file_name,label\n0.png,dog\nb/1.png,cat\n";
  const std::string json =
      "{\"file_name\": \"0.png\", \"label\": \"dog\"}\n{\"label\": \"cat\", \"file_name\": \"b/1.png\"}\n";
  for (const auto& [name, text] : {std::pair{"metadata.csv", csv}, {"metadata.jsonl", json}}) {
    const fs::path set = testing::scratch_folder(), splits = testing::scratch_folder();
    place_images(set, {"0.png", "b/1.png"});
    write_file(set / name, text);
    const auto dataset = open_dataset(set, {});
    EXPECT_EQ(dataset->class_names(), (Names{"cat", "dog"}));
    EXPECT_EQ(dataset->label(0), 1);
    EXPECT_EQ(dataset->path(1), (set / "b/1.png").string());
    EXPECT_EQ(open_dataset(set / name, {})->class_names(), dataset->class_names());
    for (const char* split : {"train", "Validation"}) {
      place_images(splits / split, {"0.png", "b/1.png"});
      write_file(splits / split / name, text);
    }
    EXPECT_EQ(dataset_splits(splits), (Names{"train", "val"}));
    const auto validation = open_dataset(splits, {.split = "val"});
    EXPECT_EQ(validation->split(), "Validation");
    EXPECT_EQ(validation->path(0), (splits / "Validation/0.png").string());
  }
}

TEST(Metadata, BesideFoldersOfSplitsHasTheirSplits) {
  const fs::path set = testing::scratch_folder();
  place_images(set, {"train/0.png", "train/1.png", "test/2.png"});
  write_file(set / "metadata.csv", "file_name,label\ntrain/0.png,a\ntest/2.png,b\ntrain/1.png,b\n");
  EXPECT_EQ(dataset_splits(set), (Names{"test", "train"}));
  EXPECT_EQ(open_dataset(set, {.split = "train"})->size(), 2);
  EXPECT_EQ(open_dataset(set, {.split = "test"})->path(0), (set / "test/2.png").string());
  EXPECT_EQ(open_dataset(set, {.split = "."})->size(), 3);
}

TEST(Metadata, MayHaveSeveralLabelsAndOtherColumns) {
  const fs::path set = testing::scratch_folder();
  place_images(set, {"0.png", "1.png"});
  write_file(set / "metadata.jsonl",
             "{\"file_name\": \"0.png\", \"labels\": [\"a, b\", \"c\"]}\n{\"file_name\": \"1.png\", \"labels\": []}\n");
  const auto dataset = open_dataset(set, {});
  EXPECT_EQ(dataset->class_names(), (Names{"a, b", "c"}));
  EXPECT_EQ(dataset->labels(0), (Labels{0, 1}));
  EXPECT_TRUE(dataset->labels(1).empty());
  write_file(set / "metadata.jsonl", "{\"file_name\": \"0.png\", \"breed\": \"x\"}\n");
  EXPECT_EQ(read_manifest(set, {.columns = {.label = "breed"}})->open({})->class_names(), Names{"x"});
}

TEST(Metadata, WithoutLabelsLeavesThemToTheFolders) {
  const fs::path set = testing::scratch_folder();
  place_images(set, {"cat/0.png", "dog/1.png"});
  for (const char* header : {"file_name,text\n", "id,label\n", ""}) {
    write_file(set / "metadata.csv", header);
    EXPECT_EQ(open_dataset(set, {})->class_names(), (Names{"cat", "dog"})) << header;
  }
}

}  // namespace
}  // namespace vitrail::data
