// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/file_list_internal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/hub/cache_files.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"

namespace vitrail::hub {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
const std::string kSha1(40, 'a'), kSha256(64, 'b');

json entry(const std::string& path, int64_t size = 1, const std::string& oid = kSha1) {
  return {{"type", "file"}, {"path", path}, {"size", size}, {"oid", oid}};
}
std::string refusal(const json& file) {
  FileList files;
  return error_of([&] { add_listed_files(json::array({file}).dump(), "reply", files); });
}

TEST(ListedFiles, LeadNowhereElse) {
  for (const char* path :
       {"", "/", "/a", "a/", "..", "../a", "a/..", "a/../b", ".", "./a", "a/./b", "a\\b", "c:a", "a\nb", "a\x1f"})
    EXPECT_TRUE(contains(refusal(entry(path)), "paths of files below the model's folder")) << path;
  EXPECT_TRUE(contains(refusal(entry(std::string(1025, 'a'))), "below the model's folder"));
  FileList files;
  for (const std::string& path : {std::string("a"), std::string("..a"), std::string("a.."), std::string(".a/b c/d"),
                                  std::string("é"), std::string(1024, 'a')}) {
    add_listed_files(json::array({entry(path)}).dump(), "reply", files);
    EXPECT_TRUE(files.contains(path)) << path;
  }
}

TEST(ListedFiles, HaveDigestsAndSizes) {
  for (const std::string& oid :
       {std::string(39, 'a'), std::string(41, 'a'), std::string(40, 'A'), std::string(40, 'g'), kSha256})
    EXPECT_TRUE(contains(refusal(entry("a", 1, oid)), "a SHA-1 or SHA-256 of a")) << oid;
  EXPECT_TRUE(contains(refusal(entry("a", -1)), "the size of a, got -1"));
  EXPECT_TRUE(contains(refusal(entry("a", (int64_t{1} << 50) + 1)), "the size of a"));
  json lfs = entry("a", 130);
  lfs["lfs"] = {{"oid", kSha1}, {"size", 5}};
  EXPECT_TRUE(contains(refusal(lfs), "a SHA-1 or SHA-256 of a")) << "SHA-256 in large file storage";
  lfs["lfs"] = {{"size", 5}};
  EXPECT_TRUE(contains(refusal(lfs), "the hub's list of files"));
  FileList files;
  add_listed_files(json::array({entry("a", int64_t{1} << 50), entry("b", 0)}).dump(), "reply", files);
  EXPECT_EQ(files["a"].size, int64_t{1} << 50);
  EXPECT_EQ(files["b"].size, 0);
}

TEST(ListedFiles, OfSeveralPagesAreTogether) {
  FileList files;
  add_listed_files(json::array({entry("a", 1), entry("b", 2)}).dump(), "reply", files);
  add_listed_files(json::array({entry("c", 3), entry("a", 4)}).dump(), "reply", files);
  EXPECT_EQ(files.size(), 3u);
  EXPECT_EQ(files["a"].size, 4);
}

class Trees : public ::testing::Test {
 protected:
  void write(const std::string& text) const { write_file(layout_.tree(kCommit), text); }
  const Layout layout_{testing::scratch_folder(), "org/name"};
};

TEST_F(Trees, AreThoseOfHuggingfaceHub) {
  FileList files;
  files["w"] = {.size = 7, .blob_id = kSha1, .lfs_sha256 = kSha256, .xet_hash = "x"};
  files["c"] = {.size = 3, .blob_id = kSha1, .lfs_sha256 = {}, .xet_hash = {}};
  write_tree(layout_, kCommit, files);
  const json expected{
      {"format_version", 1},
      {"files",
       {{"w", {{"size", 7}, {"blob_id", kSha1}, {"lfs_sha256", kSha256}, {"lfs_size", 7}, {"xet_hash", "x"}}},
        {"c", {{"size", 3}, {"blob_id", kSha1}}}}}};
  EXPECT_EQ(json::parse(read_text_file(layout_.tree(kCommit))), expected);
  // huggingface_hub keeps the size of the pointer in "size".
  write(R"({"format_version": 1, "files": {"w": {"size": 130, "blob_id": ")" + kSha1 + R"(", "lfs_sha256": ")" +
        kSha256 + R"(", "lfs_size": 7}}})");
  EXPECT_EQ(read_tree(layout_, kCommit)->at("w").size, 7);
}

TEST_F(Trees, OfAnotherVersionOrDamagedAreNone) {
  EXPECT_FALSE(read_tree(layout_, kCommit)) << "absent";
  for (const char* text : {"", "{", "[]", R"({"format_version": 2, "files": {}})", R"({"files": {}})",
                           R"({"format_version": 1})", R"({"format_version": 1, "files": {"a": {}}})"}) {
    write(text);
    EXPECT_FALSE(read_tree(layout_, kCommit)) << text;
  }
  write(R"({"format_version": 1, "files": {}})");
  EXPECT_TRUE(read_tree(layout_, kCommit) && read_tree(layout_, kCommit)->empty());
  for (const std::string& file :
       {R"("../a": {"size": 1, "blob_id": ")" + kSha1, R"("a": {"size": -1, "blob_id": ")" + kSha1,
        std::string(R"("a": {"size": 1, "blob_id": "x)")}) {
    write(R"({"format_version": 1, "files": {)" + file + "\"}}}");
    EXPECT_FALSE(read_tree(layout_, kCommit)) << file;
  }
}

TEST_F(Trees, OfMoreBytesThanAreReadAreNone) {
  write("{}");
  std::filesystem::resize_file(layout_.tree(kCommit), (64 << 20) + 1);
  EXPECT_FALSE(read_tree(layout_, kCommit));
}

TEST(ListedFiles, RefusalsNameTheReplyAndTheFile) {
  EXPECT_ERROR(refusal(entry("../a")), "reply", "\"../a\"");
  EXPECT_TRUE(refusal(entry(std::string(81, '.') + "/..")).ends_with(", got \"" + std::string(80, '.') + "\""));
  EXPECT_ERROR(refusal(entry("a/b", 1, "x")), "reply", "\"x\"");
  EXPECT_ERROR(refusal(entry("a/b", -5)), "reply", "-5");
  FileList files;
  EXPECT_ERROR(error_of([&] { add_listed_files("{}", "reply", files); }), "reply", "object");
  EXPECT_TRUE(error_of([&] {
                add_listed_files("[", "reply", files);
              }).starts_with("reply: expected the hub's list of files, got "));
  EXPECT_TRUE(files.empty());
}

TEST(ListedFiles, AreFilesAlone) {
  json folder = entry("folder");
  folder["type"] = "directory";
  FileList files;
  add_listed_files(json::array({folder, entry("a", 3), folder, entry("b", 4)}).dump(), "reply", files);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files["a"].size, 3);
  EXPECT_EQ(files["a"].blob_id, kSha1);
  EXPECT_EQ(files["a"].lfs_sha256, "");
  EXPECT_EQ(files["a"].xet_hash, "");
  EXPECT_EQ(files["a"].etag(), kSha1);
  EXPECT_EQ(files["b"].size, 4);
}

TEST(ListedFiles, OfLargeFileStorageHaveItsSizeAndDigest) {
  json lfs = entry("a", 130);
  lfs["lfs"] = {{"oid", kSha256}, {"size", 5}};
  lfs["xetHash"] = "xet";
  json none = entry("b", 131);
  none["lfs"] = none["xetHash"] = nullptr;
  FileList files;
  add_listed_files(json::array({lfs, none}).dump(), "reply", files);
  EXPECT_EQ(files["a"].size, 5);
  EXPECT_EQ(files["a"].blob_id, kSha1);
  EXPECT_EQ(files["a"].lfs_sha256, kSha256);
  EXPECT_EQ(files["a"].etag(), kSha256);
  EXPECT_EQ(files["a"].xet_hash, "xet");
  EXPECT_EQ(files["b"].size, 131);
  EXPECT_EQ(files["b"].etag(), kSha1);
  EXPECT_EQ(files["b"].xet_hash, "");
}

TEST_F(Trees, HaveTheSizeOfTheContent) {
  write(R"({"format_version": 1, "files": {
      "a": {"size": 130, "blob_id": ")" +
        kSha1 + R"(", "lfs_sha256": ")" + kSha256 + R"("},
      "b": {"size": 131, "blob_id": ")" +
        kSha1 + R"(", "lfs_size": 9},
      "c": {"size": 132, "blob_id": ")" +
        kSha1 + R"(", "lfs_sha256": ")" + kSha256 + R"(", "lfs_size": 7, "xet_hash": "x"}}})");
  const FileList files = read_tree(layout_, kCommit).value();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files.at("a").size, 130) << "an older huggingface_hub";
  EXPECT_EQ(files.at("b").size, 131) << "not in large file storage";
  EXPECT_EQ(files.at("b").etag(), kSha1);
  EXPECT_EQ(files.at("c").size, 7);
  EXPECT_EQ(files.at("c").etag(), kSha256);
  EXPECT_EQ(files.at("c").blob_id, kSha1);
  EXPECT_EQ(files.at("c").xet_hash, "x");
}

TEST(NeededFiles, AreConfigurationsAndTokenizers) {
  for (const char* name : {"config.json", "preprocessor_config.json", "processor_config.json", "open_clip_config.json",
                           "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "spiece.model",
                           "sentencepiece.model", "bpe_simple_vocab_16e6.txt", "bpe_simple_vocab_16e6.txt.gz"})
    EXPECT_TRUE(is_needed_beside_weights(name)) << name;
  for (const char* name : {"", "model.safetensors", "README.md", "onnx/config.json", "Config.json", "config.json.bak"})
    EXPECT_FALSE(is_needed_beside_weights(name)) << name;
}

}  // namespace
}  // namespace vitrail::hub
