// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/pair_set.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/image/encode.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using Captions = std::vector<std::vector<std::string>>;

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

// A folder with images a.png, b.png and c.png.
fs::path images() {
  const fs::path folder = testing::scratch_folder();
  for (const char* name : {"a.png", "b.png", "c.png"}) image::write_png(folder / name, image::make_image(4, 4, 3));
  return folder;
}

fs::path list(const std::string& rows, const char* name = "pairs.csv") {
  const fs::path folder = images();
  write(folder / name, rows);
  return folder / name;
}

void write_captions(const fs::path& folder) {
  for (const char* name : {"a", "b", "c"})
    write(folder / (std::string(name) + ".txt"), std::string("photo ") + name + "\n");
}

const Captions kOneEach{{"photo a"}, {"photo b"}, {"photo c"}};

TEST(PairSet, ListsAndArchivesGiveTheSamePairs) {
  const fs::path folder = images();
  write_captions(folder);
  write(folder / "pairs.csv", "filepath,title\na.png,photo a\nb.png,photo b\nc.png,photo c\n");
  write(folder / "pairs.tsv", "image\tcaption\na.png\tphoto a\nb.png\tphoto b\nc.png\tphoto c\n");
  write(folder / "plain.csv", "a.png,photo a\nb.png,photo b\nc.png,photo c\n");
  write(folder / "pairs.jsonl",
        "{\"file_name\": \"a.png\", \"text\": \"photo a\"}\n{\"file_name\": \"b.png\", \"text\": \"photo b\"}\n"
        "{\"file_name\": \"c.png\", \"text\": \"photo c\"}\n");
  const fs::path shards = testing::scratch_folder();
  const auto tar = [&](const fs::path& to, const std::string& files) {
    ASSERT_EQ(std::system(("tar -C '" + folder.string() + "' -cf '" + to.string() + "' " + files).c_str()), 0);
  };
  tar(shards / "0.tar", "a.png a.txt b.txt b.png");
  tar(shards / "1.tar", "c.txt c.png");
  const fs::path whole = testing::scratch_folder() / "all.tar";
  tar(whole, "a.png a.txt b.png b.txt c.png c.txt");
  for (const fs::path& path : {folder / "pairs.csv", folder / "pairs.tsv", folder / "plain.csv", folder / "pairs.jsonl",
                               whole, shards, folder}) {
    const PairSet set = open_pair_set(path);
    EXPECT_EQ(set.captions, kOneEach) << path;
    ASSERT_EQ(set.images->size(), 3) << path;
    EXPECT_EQ(set.images->image(2).width, 4) << path;
    EXPECT_EQ(set.images->label(1), 1) << path;
    EXPECT_EQ(is_pair_set(path), path.filename() != "plain.csv") << path;
  }
}

TEST(PairSet, RowsOfOneFileAreCaptionsOfOneImage) {
  const testing::Warnings warnings;
  const PairSet set = open_pair_set(list("path,caption\nb.png,one\na.png,two\nb.png,\" three, 3 \"\nb.png,one\n"));
  EXPECT_EQ(set.captions, (Captions{{"one", "three, 3"}, {"two"}}));
  EXPECT_TRUE(contains(set.images->path(0), "b.png"));
  EXPECT_TRUE(warnings.any("1 caption left out"));
}

TEST(PairSet, OptionsNameTheColumns) {
  const fs::path pairs = list("photo,words,id\na.png,one,7\n");
  EXPECT_FALSE(is_pair_set(pairs));
  EXPECT_EQ(open_pair_set(pairs, {.columns = parse_columns("file=photo,caption=words")}).captions, (Captions{{"one"}}));
  EXPECT_EQ(open_pair_set(pairs, {.columns = parse_columns("file=1,caption=2")}).captions, (Captions{{"one"}}));
}

TEST(PairSet, TakesTheRowsOfASplit) {
  const fs::path pairs = list("path,caption,split\na.png,one,train\nb.png,two,val\nc.png,three,test\n");
  EXPECT_EQ(pair_set_splits(pairs), (std::vector<std::string>{"test", "train", "val"}));
  EXPECT_EQ(open_pair_set(pairs, {.split = "val"}).captions, (Captions{{"two"}}));
  EXPECT_EQ(open_pair_set(pairs).captions.size(), 3u);
  EXPECT_EQ(pair_set_splits(pairs, {.split = "."}), std::vector<std::string>());
}

TEST(PairSet, AListOfLabelsIsNone) {
  EXPECT_FALSE(is_pair_set(list("path,title,label\na.png,one,cat\n")));
  EXPECT_FALSE(is_pair_set(list("path,label\na.png,cat\n")));
  EXPECT_FALSE(is_pair_set(images()));
}

TEST(PairSet, ErrorsSayWhere) {
  const auto refusal = [](const fs::path& path, const PairSetOptions& options = {}) {
    return error_of([&] { open_pair_set(path, options); });
  };
  const auto of_list = [&](const std::string& rows) {
    const fs::path path = list(rows);
    std::string error = refusal(path);
    for (size_t at; (at = error.find(path.string())) != error.npos;) error.replace(at, path.string().size(), "LIST");
    return error;
  };
  EXPECT_ERROR(of_list("path,caption\na.png,one\nb.png,\n"), "LIST:3", "none");
  EXPECT_ERROR(of_list("path,caption\na.png\n"), "LIST:2", "none");
  EXPECT_ERROR(of_list("path,caption\n,one\n"), "LIST:2", "none");
  EXPECT_ERROR(of_list("path,caption\n"), "LIST", "none");
  EXPECT_ERROR(of_list(""), "LIST", "none");
  EXPECT_ERROR(of_list("path,words\na.png,one\n"), "LIST", "these columns: 'path', 'words'");
  EXPECT_ERROR(of_list("words,caption\na.png,one\n"), "LIST", "these columns: 'words', 'caption'");
  EXPECT_ERROR(of_list("path,caption,title\na.png,one,two\n"), "LIST", "these columns: 'path', 'caption', 'title'");
  EXPECT_ERROR(of_list("path,caption\na.png,\xff\n"), "LIST:2", "\"\\xFF\"");
  EXPECT_ERROR(of_list("path,caption,split\na.png,one,restval\n"), "LIST:2", "'restval'");
  EXPECT_TRUE(contains(of_list("path,caption\na.png,\"one\n"), "LIST:2"));
  const fs::path pairs = list("path,caption,split\na.png,one,train\n");
  EXPECT_ERROR(refusal(pairs, {.split = "val"}), pairs.string(), "the splits train");
  const fs::path folder = images();
  EXPECT_ERROR(refusal(folder), (folder / "a.png").string(), "no such file");
  write_captions(folder);
  write(folder / "b.txt", "  \n");
  EXPECT_ERROR(refusal(folder), (folder / "b.txt").string(), "none");
  EXPECT_ERROR(refusal(folder, {.columns = parse_columns("caption=x")}), "columns", "another set: " + folder.string());
  EXPECT_ERROR(refusal(folder / "a.png"), (folder / "a.png").string(), "another file");
  EXPECT_ERROR(refusal(folder / "none.csv"), (folder / "none.csv").string(), "nothing at this path");
}

}  // namespace
}  // namespace vitrail::data
