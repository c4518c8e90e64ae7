// SPDX-License-Identifier: Apache-2.0
// pull() from a server with one model.  tests/hub/download_test.py tests the program.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/hub/hub_server.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/read_file.h"
#include "vitrail/hub/blob_digest_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/hub/layout_internal.h"

namespace vitrail::hub {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;
using testing::error_of;
const std::string kServedCommit(40, 'a');

class Pulls : public HubRequests {
 protected:
  // The entry of a file in the hub's list.
  static json listed(const std::string& path, const std::string& content) {
    const auto size = static_cast<int64_t>(content.size());
    const auto digest = digest_of_blob(std::string(40, 'x'), size);
    digest->update(content.data(), content.size());
    return {{"type", "file"}, {"path", path}, {"size", size}, {"oid", digest->hex()}};
  }
  Reply reply_to(const Request& request) {
    const std::string api = "/api/models/org/name/", files = "/org/name/resolve/" + kServedCommit + "/";
    if (request.target.starts_with(api + "revision/")) return {200, json{{"sha", kServedCommit}}.dump()};
    if (request.target == api + "tree/" + kServedCommit + "?recursive=true" || request.target == "/second-page") {
      json page = json::array();
      for (const auto& [path, content] : files_) {
        const bool second = second_page_.contains(path);
        if (second == (request.target == "/second-page")) page.push_back(listed(path, content));
      }
      Reply reply{200, page.dump()};
      if (!link_.empty() && request.target != "/second-page") reply.headers = {{"Link", link_}};
      return reply;
    }
    if (!request.target.starts_with(files)) return {404};
    const std::string path = request.target.substr(files.size());
    return encoded_.contains(path) ? Reply{200, files_.at(encoded_.at(path))}
           : files_.contains(path) ? Reply{200, files_.at(path)}
                                   : Reply{404};
  }
  fs::path pull_into(const fs::path& cache, const std::string& revision = "main") const {
    const Environment environment({{"HF_HUB_CACHE", cache.string()},
                                   {"HF_ENDPOINT", server_.url()},
                                   {"HF_TOKEN", std::nullopt},
                                   {"HF_HUB_OFFLINE", std::nullopt},
                                   {"TRANSFORMERS_OFFLINE", std::nullopt},
                                   {"HF_HUB_ETAG_TIMEOUT", "1"}});
    return pull({"org/name", revision});
  }
  size_t contents_requested() const {
    size_t count = 0;
    for (const Request& request : server_.requests()) count += contains(request.target, "/resolve/");
    return count;
  }

  std::map<std::string, std::string> files_{
      {"config.json", "{}"}, {"model.safetensors", "weights"}, {"README.md", "x"}};
  std::map<std::string, std::string> encoded_;  // paths in URLs
  std::map<std::string, int> second_page_;
  std::string link_;
  const HubServer server_{[this](const Request& request) { return reply_to(request); }};
  const fs::path cache_ = testing::scratch_folder();
  const Layout layout_{cache_, "org/name"};
};

TEST_F(Pulls, BringTheNeededFilesIntoTheCache) {
  const fs::path snapshot = pull_into(cache_);
  EXPECT_EQ(snapshot, layout_.snapshot(kServedCommit));
  EXPECT_EQ(read_text_file(snapshot / "config.json"), "{}");
  EXPECT_EQ(read_text_file(snapshot / "model.safetensors"), "weights");
  EXPECT_FALSE(fs::exists(snapshot / "README.md"));
  EXPECT_EQ(read_text_file(layout_.ref("main")), kServedCommit);
  EXPECT_TRUE(read_text_file(cache_ / "CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
  EXPECT_EQ(contents_requested(), 2u);
  pull_into(cache_);
  EXPECT_EQ(contents_requested(), 2u) << "they are there";
}

TEST_F(Pulls, WhatWasDeletedIsFetchedAgain) {
  pull_into(cache_);
  fs::remove(fs::canonical(layout_.snapshot(kServedCommit) / "config.json"));
  pull_into(cache_);
  EXPECT_EQ(contents_requested(), 3u);
  EXPECT_EQ(read_text_file(layout_.snapshot(kServedCommit) / "config.json"), "{}");
}

TEST_F(Pulls, ARevisionIsOnePartOfTheUrl) {
  pull_into(cache_, "refs/pr/1+x");
  EXPECT_EQ(server_.requests().at(0).target, "/api/models/org/name/revision/refs%2Fpr%2F1%2Bx");
  EXPECT_EQ(read_text_file(layout_.ref("refs/pr/1+x")), kServedCommit);
}

TEST_F(Pulls, ACommitNeedsNoReference) {
  pull_into(cache_, kServedCommit);
  EXPECT_FALSE(fs::exists(layout_.folder() / "refs"));
}

TEST_F(Pulls, PathsAreEncodedInUrls) {
  files_["model.safetensors.index.json"] = json{{"weight_map", {{"a", "s h#1?.safetensors"}}}}.dump();
  files_["s h#1?.safetensors"] = "shard";
  files_.erase("model.safetensors");
  encoded_["s%20h%231%3F.safetensors"] = "s h#1?.safetensors";
  EXPECT_EQ(read_text_file(pull_into(cache_) / "s h#1?.safetensors"), "shard");
}

TEST_F(Pulls, AShardThatTheHubDoesNotListIsAnError) {
  files_["model.safetensors.index.json"] = json{{"weight_map", {{"a", "absent.safetensors"}}}}.dump();
  files_.erase("model.safetensors");
  EXPECT_TRUE(contains(error_of([&] { pull_into(cache_); }), "the shard absent.safetensors among its files"));
  EXPECT_FALSE(fs::exists(layout_.ref("main"))) << "a reference names a complete snapshot";
}

TEST_F(Pulls, AListMayHaveSeveralPages) {
  second_page_["model.safetensors"] = 1;
  link_ = "<" + server_.url() + "/first>; rel=\"first\", <" + server_.url() + "/second-page>; rel=\"next\", <" +
          server_.url() + "/last>; rel=\"last\"";
  EXPECT_EQ(read_text_file(pull_into(cache_) / "model.safetensors"), "weights");
}

// The token would go there, and the list of another server's files would be taken.
TEST_F(Pulls, PagesOfOtherServersAreNotFollowed) {
  second_page_["model.safetensors"] = 1;
  const HubServer other([&](const Request&) {
    return Reply{200, json::array({listed("model.safetensors", "evil")}).dump()};
  });
  for (const std::string& link : {"<" + other.url() + "/second-page>; rel=\"next\"", std::string("no link"),
                                  "<" + server_.url() + "/second-page>; rel=\"prev\""}) {
    link_ = link;
    EXPECT_TRUE(contains(error_of([&] { pull_into(testing::scratch_folder()); }), "a model with model.safetensors"))
        << link;
  }
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(Pulls, ProgressIsThatOfAllFiles) {
  files_["preprocessor_config.json"] = "{ }";
  std::vector<Transfer> transfers;
  const TransferCallback before =
      set_transfer_callback([&](const Transfer& transfer) { transfers.push_back(transfer); });
  pull_into(cache_);
  set_transfer_callback(before);
  ASSERT_FALSE(transfers.empty());
  EXPECT_EQ(transfers.back().done, 2 + 3 + 7);
  int64_t done = 0;
  for (const Transfer& transfer : transfers) {
    EXPECT_EQ(transfer.total, 2 + 3 + 7);
    EXPECT_GE(transfer.done, done);
    done = transfer.done;
  }
  std::vector<std::string> names;
  for (const Transfer& transfer : transfers) {
    if (names.empty() || names.back() != transfer.file) names.push_back(transfer.file);
  }
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], "config.json");
}

TEST_F(Pulls, OfflineNothingIsRequested) {
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    const Environment environment({{"HF_HUB_CACHE", cache_.string()},
                                   {"HF_ENDPOINT", server_.url()},
                                   {"HF_HUB_OFFLINE", std::nullopt},
                                   {"TRANSFORMERS_OFFLINE", std::nullopt},
                                   {name, "1"}});
    EXPECT_TRUE(contains(error_of([] { fetch({"org/name", "main"}); }), "because HF_HUB_OFFLINE is set")) << name;
  }
  EXPECT_TRUE(server_.requests().empty());
}

// Replies that no hub gives.
TEST_F(Pulls, AReplyWithoutACommitIsAnError) {
  for (const auto& [body, got] : {std::pair<std::string, std::string>{"text", "no JSON"},
                                  {"[]", "none"},
                                  {"{}", "none"},
                                  {json{{"sha", std::string(39, 'a')}}.dump(), "none"},
                                  {json{{"sha", std::string(41, 'a')}}.dump(), "none"},
                                  {json{{"sha", std::string(40, 'g')}}.dump(), "none"},
                                  {json{{"sha", 1}}.dump(), "none"}}) {
    const HubServer server([&, text = body](const Request&) { return Reply{200, text}; });
    const Environment environment({{"HF_HUB_CACHE", cache_.string()},
                                   {"HF_ENDPOINT", server.url()},
                                   {"HF_TOKEN", std::nullopt},
                                   {"HF_HUB_OFFLINE", std::nullopt},
                                   {"TRANSFORMERS_OFFLINE", std::nullopt}});
    EXPECT_ERROR(error_of([] { pull({"org/name", "v1"}); }), server.url() + "/api/models/org/name/revision/v1", got);
  }
}

TEST_F(Pulls, AModelWithoutWeightsIsNamedWithItsFiles) {
  files_.erase("model.safetensors");
  files_["onnx/model.safetensors"] = "x";
  EXPECT_ERROR(error_of([&] { pull_into(cache_, "v1"); }), "org/name@v1", "one with README.md, config.json");
  files_.clear();
  fs::remove_all(cache_ / "models--org--name");
  EXPECT_ERROR(error_of([&] { pull_into(cache_); }), "org/name", "no files");
}

TEST_F(Pulls, AStatusOfTheHubIsOfTheModel) {
  const HubServer server([](const Request&) { return Reply{404}; });
  const Environment environment({{"HF_HUB_CACHE", cache_.string()},
                                 {"HF_ENDPOINT", server.url()},
                                 {"HF_TOKEN", "hf_t"},
                                 {"HF_HUB_OFFLINE", std::nullopt},
                                 {"TRANSFORMERS_OFFLINE", std::nullopt}});
  EXPECT_EQ(error_of([] {
              pull({"org/name", "v1"});
            }),
            "org/name@v1: expected a model on " + server.url() +
                ", or a folder of this machine, got neither; if the model is private or gated, the token in HF_TOKEN "
                "gives no access");
  EXPECT_TRUE(error_of([] {
                fetch({"org/name", "v1"});
              }).starts_with("org/name@v1 (not in the cache " + cache_.string() + "): expected a model on "));
}

TEST_F(Pulls, WithoutAReplyTheModelAndTheSearchedCacheAreNamed) {
  const Environment environment({{"HF_HUB_CACHE", cache_.string()},
                                 {"HF_ENDPOINT", "http://127.0.0.1:1"},
                                 {"HF_TOKEN", std::nullopt},
                                 {"HF_HUB_OFFLINE", std::nullopt},
                                 {"TRANSFORMERS_OFFLINE", std::nullopt}});
  EXPECT_TRUE(error_of([] {
                fetch({"org/name", "main"});
              }).starts_with("org/name (not in the cache " + cache_.string() + "): http://127.0.0.1:1/api/"));
}

// The list that the cache keeps of a commit is taken.
TEST_F(Pulls, AKnownCommitIsNotListedAgain) {
  pull_into(cache_);
  const auto lists = [&] {
    size_t count = 0;
    for (const Request& request : server_.requests()) count += contains(request.target, "/tree/");
    return count;
  };
  EXPECT_EQ(lists(), 1u);
  pull_into(cache_, "v2");
  EXPECT_EQ(lists(), 1u);
  EXPECT_EQ(read_text_file(layout_.ref("v2")), kServedCommit);
  EXPECT_EQ(contents_requested(), 2u);
}

TEST_F(Pulls, ACacheKeepsItsTag) {
  std::ofstream(cache_ / "CACHEDIR.TAG") << "mine";
  pull_into(cache_);
  EXPECT_EQ(read_text_file(cache_ / "CACHEDIR.TAG"), "mine");
}

TEST_F(Pulls, WithoutLinksFilesAreInTheSnapshot) {
  const Environment environment({{"HF_HUB_DISABLE_SYMLINKS", std::string("1")}});
  const fs::path snapshot = pull_into(cache_);
  EXPECT_FALSE(fs::is_symlink(snapshot / "model.safetensors"));
  EXPECT_EQ(read_text_file(snapshot / "model.safetensors"), "weights");
  EXPECT_TRUE(fs::is_empty(layout_.blobs()));
  pull_into(cache_);
  EXPECT_EQ(contents_requested(), 2u);
}

TEST_F(Pulls, APathKeepsItsPlainCharacters) {
  files_["model.safetensors.index.json"] = json{{"weight_map", {{"a", "aZ09-_.~é%+.safetensors"}}}}.dump();
  files_["aZ09-_.~é%+.safetensors"] = "shard";
  files_.erase("model.safetensors");
  encoded_["aZ09-_.~%C3%A9%25%2B.safetensors"] = "aZ09-_.~é%+.safetensors";
  EXPECT_EQ(read_text_file(pull_into(cache_) / "aZ09-_.~é%+.safetensors"), "shard");
}

TEST_F(Pulls, MoreBytesThanTheDiskHasAreNotBegun) {
  const HubServer server([&](const Request& request) {
    if (!contains(request.target, "/tree/")) return reply_to(request);
    json weights = listed("model.safetensors", "weights");
    weights["size"] = int64_t{1} << 50;
    return Reply{200, json::array({weights, listed("config.json", "{}")}).dump()};
  });
  const Environment environment({{"HF_HUB_CACHE", cache_.string()},
                                 {"HF_ENDPOINT", server.url()},
                                 {"HF_TOKEN", std::nullopt},
                                 {"HF_HUB_OFFLINE", std::nullopt},
                                 {"TRANSFORMERS_OFFLINE", std::nullopt}});
  const std::string message = error_of([] { pull({"org/name", "main"}); });
  EXPECT_TRUE(message.starts_with(cache_.string() + ": expected 1125899907 MB of free space for org/name, got "))
      << message << ": 2^50 + 2 bytes, rounded up";
  EXPECT_TRUE(
      message.ends_with(" MB; HF_HUB_CACHE names another folder, and vitrail cache prune deletes what is not used"))
      << message;
  for (const Request& request : server.requests()) EXPECT_FALSE(contains(request.target, "/resolve/"));
}

TEST_F(Pulls, OfflineTheModelIsNamed) {
  const Environment environment(
      {{"HF_HUB_CACHE", cache_.string()}, {"HF_ENDPOINT", server_.url()}, {"HF_HUB_OFFLINE", "1"}});
  EXPECT_EQ(error_of([] {
              pull({"org/name", "v1"});
            }),
            "org/name@v1: expected a complete model in " + cache_.string() +
                ", because HF_HUB_OFFLINE is set, got none; vitrail pull org/name@v1 brings it there when "
                "HF_HUB_OFFLINE is not set");
}

}  // namespace
}  // namespace vitrail::hub
