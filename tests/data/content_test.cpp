// SPDX-License-Identifier: Apache-2.0
// Small parts of datasets: contents, listings of archives, names of kinds, and texts.
#include "vitrail/data/datasets/content_internal.h"

#include <zlib.h>

#include <chrono>
#include <map>
#include <optional>

#include "tests/data/support.h"
#include "vitrail/data/augment/interval_json_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/folder_splits_internal.h"
#include "vitrail/data/datasets/folder_walk_internal.h"
#include "vitrail/data/datasets/imagenet_labels.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/data/loader/decoded_cache.h"

namespace vitrail::data {
namespace {

using Paths = std::vector<std::string>;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Content, IsHashedWholeAndHasASize) {
  EXPECT_EQ(hash_of(bytes_of("abc")), hash_of(bytes_of("abc")));
  for (const char* other : {"", "ab", "abd", "bbc", "abcd"})
    EXPECT_NE(hash_of(bytes_of("abc")), hash_of(bytes_of(other))) << other;
  const fs::path root = testing::scratch_folder();
  write_file(root / "a", "abc");
  write_file(root / "empty", "");
  EXPECT_EQ(data::file_size(root / "a"), 3);
  EXPECT_EQ(data::file_size(root / "empty"), 0);
  EXPECT_EQ(data::file_size(root / "gone"), -1);
  EXPECT_EQ(hash_of_file(root / "a"), hash_of(bytes_of("abc")));
  EXPECT_TRUE(contains(error_of([&] { hash_of_file(root / "gone"); }), (root / "gone").string()));
}

// The content of each format is that of the encoded image, or of its pixels where there is no code.
TEST(Content, OfADatasetIsThatOfItsFiles) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/1.png", "dog/2.png"});
  write_file(root / "dog/3.png", "something else");
  write_file(root / "l.csv", "cat/1.png,0\ndog/3.png,1\n");
  const auto folders = open_dataset(root, {}), list = open_dataset(root / "l.csv", {});
  const int64_t size = data::file_size(root / "cat/1.png");
  EXPECT_EQ(folders->content_size(0), size);
  EXPECT_EQ(folders->content_size(2), 14);
  EXPECT_EQ(folders->content_hash(0), folders->content_hash(1));
  EXPECT_NE(folders->content_hash(0), folders->content_hash(2));
  EXPECT_EQ(list->content_size(1), 14);
  EXPECT_EQ(list->content_hash(0), folders->content_hash(0));
  EXPECT_EQ(list->content_hash(1), hash_of_file(root / "dog/3.png"));
  fs::remove(root / "cat/1.png");
  EXPECT_EQ(folders->content_size(0), -1);
  EXPECT_THROW(folders->content_hash(0), Error);
  EXPECT_EQ(folders->content_size(1), size);
}

// Archives have the time of their file, and CIFAR's and MNIST's images only a hash.
TEST(Content, HasTheModificationTimeOfItsFile) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"cat/1.png", "dog/2.png"});
  write_file(root / "l.csv", "cat/1.png,0\ndog/2.png,1\n");
  const auto folders = open_dataset(root, {}), list = open_dataset(root / "l.csv", {});
  ASSERT_TRUE(folders->modified_at(1).has_value());
  EXPECT_EQ(folders->modified_at(0), modification_time(root / "cat/1.png"));
  EXPECT_EQ(list->modified_at(1), folders->modified_at(1));
  EXPECT_EQ(cache_decoded(open_dataset(root, {}), 1 << 20)->modified_at(1), folders->modified_at(1));
  fs::last_write_time(root / "dog/2.png", fs::last_write_time(root / "dog/2.png") + std::chrono::milliseconds(7));
  EXPECT_EQ(folders->modified_at(1), modification_time(root / "dog/2.png")) << "as it is now";
  EXPECT_EQ(list->modified_at(1), folders->modified_at(1));
  fs::remove(root / "cat/1.png");
  EXPECT_EQ(folders->modified_at(0), std::nullopt);
}

TEST(Dataset, WithoutContentsHasNone) {
  struct Nothing : Dataset {
    int64_t size() const override { return 1; }
    std::string path(int64_t) const override { return "x"; }
    int64_t label(int64_t) const override { return 7; }
    image::Image image(int64_t) const override { return {1, 1, 1, {9}}; }
  };
  const Nothing dataset;
  EXPECT_EQ(dataset.content_size(0), -1);
  EXPECT_EQ(dataset.content_hash(0), 0u);
  EXPECT_EQ(dataset.modified_at(0), std::nullopt);
  EXPECT_FALSE(dataset.is_multi_label());
  EXPECT_EQ(dataset.labels(0), std::vector<int64_t>{7});
  EXPECT_TRUE(dataset.class_names().empty());
  EXPECT_EQ(dataset.split(), "");
  const Sample sample = dataset.get(0);
  EXPECT_EQ(sample.path, "x");
  EXPECT_EQ(sample.label, 7);
  EXPECT_EQ(sample.image.pixels[0], 9);
  EXPECT_EQ(Sample().label, -1);
  const DatasetOptions options;
  EXPECT_EQ(options.default_splits, (Paths{"test", "val"}));
  EXPECT_TRUE(options.split.empty() && options.labels.empty() && options.wordnet_ids.empty());
  EXPECT_EQ(options.num_classes, 0);
  EXPECT_FALSE(options.multi_label);
}

TEST(AddEntry, ListsTheFileAndTheFoldersAroundIt) {
  FolderListing listing;
  std::set<std::string> folders;
  for (const char* path :
       {"a/b/1.png", "a/b/2.txt", "a/c/", "top.jpg", "a/", "d/e/f/", "__MACOSX/a/1.png", "a/__MACOSX/2.png",
        "a/b/._1.png", "a/.DS_Store", "a/b/Thumbs.db", "new/lost+found/", "a/b/.3.png"})
    add_entry(listing, folders, path);
  EXPECT_EQ(listing.images, (Paths{"a/b/1.png", "top.jpg"}));
  EXPECT_EQ(listing.others, Paths{"a/b/2.txt"});
  EXPECT_EQ(listing.folders, (Paths{"a", "a/b", "a/c", "d", "d/e", "d/e/f", "new"}));
  EXPECT_EQ(folders, (std::set<std::string>{"a", "a/b", "a/c", "d", "d/e", "d/e/f", "new"}));
}

TEST(AddFile, PutsAFileIntoItsList) {
  FolderListing listing;
  for (const char* path : {"b.PNG", "a.png", "b.txt", "a"}) add_file(listing, path);
  listing.folders = {"y", "x"};
  EXPECT_EQ(listing.images, (Paths{"b.PNG", "a.png"}));
  EXPECT_EQ(listing.others, (Paths{"b.txt", "a"}));
  sort_listing(listing);
  EXPECT_EQ(listing.images, (Paths{"a.png", "b.PNG"}));
  EXPECT_EQ(listing.others, (Paths{"a", "b.txt"}));
  EXPECT_EQ(listing.folders, (Paths{"x", "y"}));
}

TEST(TopFolders, HaveImagesInThemOrBelow) {
  FolderListing listing;
  listing.images = {"a/1.png", "b/c/2.png", "d/3.png", "d/e/f/4.png", "5.png"};
  const auto tops = top_folders({listing, "set"});
  ASSERT_EQ(tops.size(), 3u);
  EXPECT_TRUE(tops.at("a").has_images && !tops.at("a").has_class_folders && !tops.at("a").may_be_split());
  EXPECT_TRUE(!tops.at("b").has_images && tops.at("b").has_class_folders && tops.at("b").may_be_split());
  EXPECT_TRUE(tops.at("d").has_images && tops.at("d").has_class_folders && !tops.at("d").may_be_split());
}

TEST(NamesAClass, AlsoWhereItFitsSeveral) {
  const Paths labels{"cat, tabby", "dog", "dog"}, ids{"n1", "n2", "n3"};
  for (const char* name : {"cat", "Tabby", "dog", "n2", "11", "0"})
    EXPECT_TRUE(names_a_class(name, labels, ids, 12)) << name;
  for (const char* name : {"bird", "12", "-1", "n4", "1.0"}) EXPECT_FALSE(names_a_class(name, labels, ids, 12)) << name;
  EXPECT_FALSE(names_a_class("3", {}, {}, INT64_MAX)) << "without a model no number is a class";
}

TEST(LeftOut, EachKindThatIsNotReadIsKnown) {
  for (const std::string kind :
       {"heic", "heif", "hif", "avif", "jxl", "jp2", "j2k", "jpx", "jpc", "svg", "svgz", "ico", "psd",
        "xcf",  "tga",  "dds", "exr",  "hdr", "pcx", "eps", "raw", "dng", "cr2", "cr3",  "nef", "arw",
        "orf",  "rw2",  "raf", "pef",  "srw", "dcm", "nii", "pdf", "mp4", "mov", "avi",  "mkv", "webm"}) {
    EXPECT_TRUE(is_unsupported_image("a/b." + kind)) << kind;
    EXPECT_FALSE(is_unsupported_image("a/b." + kind + "x")) << kind;
    EXPECT_FALSE(is_unsupported_image(kind)) << kind;
  }
  for (const char* name :
       {"__MACOSX", ".DS_Store", ".localized", "Thumbs.db", "ehthumbs.db", "desktop.ini", "lost+found", "._", "._x"})
    EXPECT_TRUE(is_ignored_name(name)) << name;
  for (const char* name : {"__MACOSX2", "DS_Store", "x._y", "Desktop.ini"}) EXPECT_FALSE(is_ignored_name(name)) << name;
}

TEST(QuotedList, EndsAfterTwentyNames) {
  const auto list = [](int count) {
    Paths names;
    for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
    return quoted_list(names);
  };
  EXPECT_EQ(list(0), "");
  EXPECT_EQ(list(1), "'0'");
  EXPECT_EQ(list(2), "'0', '1'");
  EXPECT_TRUE(list(20).ends_with(", '18', '19'"));
  EXPECT_TRUE(list(21).ends_with(", '18', '19' and 1 more"));
  EXPECT_TRUE(list(35).ends_with(", '19' and 15 more"));
}

TEST(ClassMatching, RefusalsSayWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              match_classes("set", {"cat", "wolf"}, {"cat", "dog"}, {});
            }),
            "set: expected class names that are labels or WordNet ids of the model, got 1 of 2 that are not: 'wolf'");
  EXPECT_EQ(error_of([] {
              match_classes("set", {"cat"}, {"cat, a", "cat, b"}, {});
            }),
            "set: expected class names that are labels or WordNet ids of the model, got 1 of 1 that are not: "
            "'cat' (fits 0 and 1)");
  EXPECT_EQ(error_of([] {
              match_classes("set", {"7", "5", "007"}, {}, {}, 9);
            }),
            "set: expected one folder per class index, got '7', '007'");
  const ClassMatch none = match_classes("set", {"1", "x"}, {}, {}, 9);
  EXPECT_TRUE(none.indices.empty());
  // A label with the same synonym twice is one class, and one before a comma at the end has no empty name.
  EXPECT_EQ(match_classes("set", {"tabby"}, {"dog", "Tabby cat, tabby, TABBY,"}, {}).indices, std::vector<int64_t>{1});
  EXPECT_EQ(match_classes("set", {"n2"}, {"n2", "x"}, {"n1", "n2"}).indices, std::vector<int64_t>{0})
      << "a label precedes an id";
  EXPECT_EQ(match_classes("set", {"N2"}, {"a", "n2, b"}, {"n2", "n1"}).indices, std::vector<int64_t>{0})
      << "an id precedes a synonym";
}

TEST(IntervalJson, IsTheIntervalOfWilson) {
  EXPECT_EQ(interval_json(0, 0).dump(), "[0.0,1.0]");
  const auto interval = interval_json(57 / 60.0, 60);
  ASSERT_EQ(interval.size(), 2u);
  EXPECT_NEAR(interval[0].get<double>(), 0.862995, 1e-6);
  EXPECT_NEAR(interval[1].get<double>(), 0.982850, 1e-6);
}

// A sum over the whole list, which agreed with the published one when it was made.
TEST(ImagenetLabels, AreThoseOfTheList) {
  std::string lines;
  for (size_t i = 0; i < imagenet_class_names().size(); ++i)
    lines += std::string(imagenet_wordnet_ids()[i]) + " " + std::string(imagenet_class_names()[i]) + "\n";
  EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(lines.data()), static_cast<uInt>(lines.size())), 391889179u);
  EXPECT_TRUE(std::is_sorted(imagenet_wordnet_ids().begin(), imagenet_wordnet_ids().end()));
}

TEST(ListImages, HasThePathsOfAFolder) {
  const fs::path root = testing::scratch_folder();
  place_images(root, {"b/2.png", "a.JPG", "b/c/1.gif"});
  write_file(root / "x.txt", "x");
  EXPECT_EQ(list_images(root),
            (Paths{(root / "a.JPG").string(), (root / "b/2.png").string(), (root / "b/c/1.gif").string()}));
  EXPECT_TRUE(contains(error_of([&] { list_images(root / "gone"); }), "gone: cannot be read: "));
  fs::create_directories(root / "none");
  EXPECT_TRUE(list_images(root / "none").empty());
}

TEST(InputPaths, MessagesNameTheFolder) {
  const fs::path root = testing::scratch_folder();
  fs::create_directories(root / "empty");
  write_file(root / "other/a.txt", "x");
  const Warnings warnings;
  const auto inputs = expand_input_paths({(root / "empty").string(), (root / "other").string()});
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].path, (root / "empty").string());
  EXPECT_EQ(inputs[0].error, (root / "empty").string() + ": expected a folder with images, got none");
  EXPECT_EQ(inputs[1].error,
            (root / "other").string() + ": expected a folder with images, got none (1 file left out: 1 .txt)");
  EXPECT_TRUE(warnings.messages.empty()) << "the error tells it";
  EXPECT_TRUE(expand_input_paths({}).empty());
}

}  // namespace
}  // namespace vitrail::data
