// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/download_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/hub/hub_server.h"
#include "tests/support/messages.h"
#include "vitrail/base/read_file.h"
#include "vitrail/hub/blob_digest_internal.h"

namespace vitrail::hub {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;

std::string digest_of(const std::string& content) {
  const auto digest = digest_of_blob(std::string(64, 'x'), 0);
  digest->update(content.data(), content.size());
  return digest->hex();
}

// Downloads of one file from a server that replies as the test says.
class Downloads : public HubRequests {
 protected:
  Download download_from(const HubServer& server) const {
    return {server.url() + "/file", "org/name: file", "org/name", blob_, static_cast<int64_t>(content_.size())};
  }
  void run(const HubServer& server, const Download& wanted) {
    HttpClient client(settings_for(server.url()));
    download(client, wanted, [&](int64_t bytes) { progress_.push_back(bytes); });
  }
  void run(const HubServer& server) { run(server, download_from(server)); }
  // The content from `start`, as a server that honours ranges sends it.
  Reply range_from(size_t start, size_t count = std::string::npos) const {
    const std::string range = str("bytes ", start, "-", content_.size() - 1, "/", content_.size());
    return {206, content_.substr(start, count), {{"Content-Range", range}}};
  }
  void write(const std::string& ending, const std::string& text) const {
    std::ofstream(blob_.string() + ending, std::ios::binary) << text;
  }
  bool exists(const std::string& ending) const { return fs::exists(blob_.string() + ending); }
  void expect_complete() const {
    EXPECT_EQ(read_text_file(blob_), content_);
    EXPECT_FALSE(exists(".vitrail-partial"));
    EXPECT_FALSE(exists(".vitrail-etag"));
  }

  const std::string content_ = [] {
    std::string text;
    for (int i = 0; i < 7000; ++i) text += static_cast<char>(i * i % 251);
    return text;
  }();
  const fs::path blob_ = testing::scratch_folder() / digest_of(content_);
  std::vector<int64_t> progress_;
};

TEST_F(Downloads, AFileGetsTheNameOfItsDigest) {
  const HubServer server([&](const Request&) { return Reply{200, content_, {{"ETag", "\"v1\""}}}; });
  run(server);
  expect_complete();
  EXPECT_EQ(server.requests().at(0).header("Range"), "");
  EXPECT_EQ(server.requests().at(0).header("If-Range"), "");
  EXPECT_EQ(progress_.front(), 0);
  EXPECT_EQ(progress_.back(), 7000);
}

TEST_F(Downloads, AnEmptyFileNeedsNoRequest) {
  const HubServer server([](const Request&) { return Reply{500}; });
  Download wanted = download_from(server);
  wanted.size = 0;
  wanted.blob = blob_.parent_path() / digest_of("");
  run(server, wanted);
  EXPECT_TRUE(fs::exists(wanted.blob) && fs::is_empty(wanted.blob));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Downloads, WhatIsThereIsContinued) {
  write(".vitrail-partial", content_.substr(0, 2500));
  write(".vitrail-etag", "\"v1\"");
  EXPECT_EQ(partial_bytes(blob_), 2500);
  const HubServer server([&](const Request&) { return range_from(2500); });
  run(server);
  expect_complete();
  EXPECT_EQ(server.requests().at(0).header("Range"), "bytes=2500-");
  EXPECT_EQ(server.requests().at(0).header("If-Range"), "\"v1\"");
  EXPECT_EQ(progress_.front(), 2500);
  EXPECT_EQ(partial_bytes(blob_), 0);
}

TEST_F(Downloads, AllBytesThatAreThereNeedNoRequest) {
  write(".vitrail-partial", content_);
  const HubServer server([](const Request&) { return Reply{500}; });
  run(server);
  expect_complete();
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Downloads, MoreBytesThanTheFileHasAreDropped) {
  write(".vitrail-partial", content_ + "x");
  const HubServer server([&](const Request&) { return Reply{200, content_}; });
  run(server);
  expect_complete();
  EXPECT_EQ(server.requests().at(0).header("Range"), "");
  EXPECT_EQ(progress_.front(), 0);
}

// RFC 9110, section 13.1.5: a weak tag does not tell that the bytes are the same.
TEST_F(Downloads, AWeakTagIsNotUsedToContinue) {
  for (const std::string tag : {"W/\"v1\"", ""}) {
    fs::remove(blob_);
    write(".vitrail-partial", content_.substr(0, 10));
    write(".vitrail-etag", "\"old\"");
    int replies = 0;
    const HubServer server([&](const Request&) {
      if (++replies > 1) return range_from(4000);
      return Reply{200, content_.substr(0, 4000), {{"ETag", tag}}, content_.size()};  // cut
    });
    run(server);
    expect_complete();
    ASSERT_EQ(server.requests().size(), 2u);
    EXPECT_EQ(server.requests()[1].header("Range"), "bytes=4000-");
    EXPECT_EQ(server.requests()[1].header("If-Range"), "") << tag;
  }
}

TEST_F(Downloads, AStrongTagOfTheLastReplyIsUsedToContinue) {
  int replies = 0;
  const HubServer server([&](const Request&) {
    if (++replies > 1) return range_from(4000);
    return Reply{200, content_.substr(0, 4000), {{"ETag", "\"v2\""}}, content_.size()};
  });
  run(server);
  expect_complete();
  EXPECT_EQ(server.requests().at(1).header("If-Range"), "\"v2\"");
}

// A proxy may pass on a limited number of bytes at once.  Only tries without a new byte are counted, and only after
// such a try there is a pause.
TEST_F(Downloads, ManyShortRepliesAreNoFailure) {
  const HubServer server([&](const Request& request) {
    const std::string range = request.header("Range");
    if (range.empty()) return Reply{200, content_.substr(0, 500)};
    return range_from(std::stoul(range.substr(6)), 500);
  });
  const auto start = std::chrono::steady_clock::now();
  run(server);
  expect_complete();
  EXPECT_EQ(server.requests().size(), 14u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Downloads, ARangeThatWasNotAskedForStartsAgain) {
  for (const std::string range : {"bytes 101-6999/7000", "bytes 100-6999/7001", "bytes x-6999/7000",
                                  "bytes 100-6998/7000", "octets 100-6999/7000", "bytes 100-6999/7000 "}) {
    fs::remove(blob_);
    write(".vitrail-partial", content_.substr(0, 100));
    const HubServer server([&](const Request& request) {
      if (request.header("Range").empty()) return Reply{200, content_};
      return Reply{206, content_.substr(100), {{"Content-Range", range}}};
    });
    run(server);
    expect_complete();
    EXPECT_EQ(server.requests().size(), range.ends_with(' ') ? 1u : 2u) << range << ": a header's value is trimmed";
  }
}

TEST_F(Downloads, ARangeThatCannotBeSatisfiedStartsAgain) {
  write(".vitrail-partial", content_.substr(0, 100));
  const HubServer server([&](const Request& request) {
    return request.header("Range").empty() ? Reply{200, content_} : Reply{416};
  });
  run(server);
  expect_complete();
}

TEST_F(Downloads, AReplyWithTheWholeFileReplacesWhatIsThere) {
  write(".vitrail-partial", std::string(100, 'z'));
  const HubServer server([&](const Request&) { return Reply{200, content_}; });
  run(server);
  expect_complete();
}

TEST_F(Downloads, MoreBytesThanTheHubListsAreAnError) {
  const HubServer server([&](const Request&) { return Reply{200, content_ + "x"}; });
  EXPECT_TRUE(
      contains(error_of([&] { run(server); }), "org/name: file: expected 7000 bytes, as the hub lists, got more"));
  EXPECT_FALSE(fs::exists(blob_));
  EXPECT_EQ(partial_bytes(blob_), 0) << "nothing of it is kept";
}

TEST_F(Downloads, WrongContentIsFetchedOnceMore) {
  int replies = 0;
  const HubServer server([&](const Request&) {
    return Reply{200, ++replies == 1 ? std::string(7000, 'w') : content_};
  });
  run(server);
  expect_complete();
  fs::remove(blob_);
  const HubServer wrong([&](const Request&) { return Reply{200, std::string(7000, 'w'), {{"ETag", "\"v\""}}}; });
  EXPECT_TRUE(contains(error_of([&] { run(wrong); }), "other content, twice"));
  EXPECT_EQ(wrong.requests().size(), 2u);
  EXPECT_FALSE(fs::exists(blob_));
  EXPECT_EQ(partial_bytes(blob_), 0);
  EXPECT_FALSE(exists(".vitrail-etag"));
  EXPECT_EQ(progress_.back(), 0) << "the bytes do not count any more";
}

TEST_F(Downloads, ARefusalSaysWhatToDoAndKeepsTheBytes) {
  write(".vitrail-partial", content_.substr(0, 100));
  const HubServer server([](const Request&) { return Reply{403, "", {{"X-Error-Code", "GatedRepo"}}}; });
  EXPECT_TRUE(contains(error_of([&] { run(server); }), "accept its licence at " + server.url() + "/org/name"));
  EXPECT_EQ(partial_bytes(blob_), 100);
}

TEST_F(Downloads, ALinkIsNotWrittenThrough) {
  const fs::path victim = testing::scratch_folder() / "victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, blob_.string() + ".vitrail-partial");
  const HubServer server([&](const Request&) { return Reply{200, content_}; });
  EXPECT_TRUE(contains(error_of([&] { run(server); }), "cannot be written"));
  EXPECT_EQ(read_text_file(victim), "precious");
}

TEST(PartialName, IsThatOfADownloadInProgress) {
  for (const char* name : {"ab.vitrail-partial", "ab.vitrail-etag", "ab.incomplete"})
    EXPECT_TRUE(is_partial_name(name));
  for (const char* name : {"ab", "ab.lock", "vitrail-partial.ab", ""}) EXPECT_FALSE(is_partial_name(name)) << name;
}

TEST_F(Downloads, ProgressIsTheNumberOfBytesThatAreThere) {
  write(".vitrail-partial", content_.substr(0, 100));
  const HubServer server([&](const Request&) { return range_from(100); });
  run(server);
  EXPECT_EQ(progress_.front(), 100);
  EXPECT_EQ(progress_.back(), 7000);
  EXPECT_TRUE(std::ranges::is_sorted(progress_));
}

TEST_F(Downloads, MessagesNameTheFile) {
  const HubServer wrong([&](const Request&) { return Reply{200, std::string(7000, 'w')}; });
  EXPECT_EQ(error_of([&] { run(wrong); }),
            "org/name: file: expected content with the digest " + blob_.filename().string() +
                ", got other content, twice; it was deleted. Does a proxy change it? HF_ENDPOINT names a mirror");
  EXPECT_EQ(std::ranges::count(progress_, 0), 3) << "at the beginning, and after both tries";
  const HubServer server([&](const Request&) { return Reply{200, content_}; });
  fs::remove(blob_.string() + ".vitrail-partial");
  fs::create_directories(blob_.string() + ".vitrail-partial");
  EXPECT_EQ(error_of([&] { run(server); }), blob_.string() + ".vitrail-partial: cannot be written: Is a directory");
}

}  // namespace
}  // namespace vitrail::hub
