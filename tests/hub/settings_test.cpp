// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/settings_internal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/hub/hub_server.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::hub {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using Values = std::vector<std::pair<std::string, std::optional<std::string>>>;

// The settings with these variables, a home folder of their own and no other variable of the hub.
Settings settings_with(const Values& given, const fs::path& home = "/home/me") {
  Values values{{"HOME", home.string()}};
  for (const char* name :
       {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_ENDPOINT", "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_SYMLINKS", "HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"})
    values.emplace_back(name, std::nullopt);
  values.insert(values.end(), given.begin(), given.end());
  const Environment environment(values);
  return settings_from_environment();
}

TEST(HubSettings, HaveTheDefaultsOfHuggingfaceHub) {
  const Settings settings = settings_with({});
  EXPECT_EQ(settings.cache, "/home/me/.cache/huggingface/hub");
  EXPECT_EQ(settings.endpoint, "https://huggingface.co");
  EXPECT_EQ(settings.token, "");
  EXPECT_FALSE(settings.offline);
  EXPECT_TRUE(settings.symlinks);
  EXPECT_EQ(settings.connect_timeout_s, 10);
  EXPECT_EQ(settings.stall_timeout_s, 10);
}

TEST(HubSettings, TheCacheIsTheOneOfTheFirstVariable) {
  Values values{{"XDG_CACHE_HOME", "/xdg"}};
  EXPECT_EQ(settings_with(values).cache, "/xdg/huggingface/hub");
  values.emplace_back("HF_HOME", "/hf");
  EXPECT_EQ(settings_with(values).cache, "/hf/hub");
  values.emplace_back("HUGGINGFACE_HUB_CACHE", "/old");
  EXPECT_EQ(settings_with(values).cache, "/old");
  values.emplace_back("HF_HUB_CACHE", "~/cache");
  EXPECT_EQ(settings_with(values).cache, "/home/me/cache");
  EXPECT_EQ(settings_with({{"HF_HUB_CACHE", "~"}}).cache, "/home/me");
  EXPECT_EQ(settings_with({{"HF_HUB_CACHE", "~x"}}).cache, "~x") << "no home of another user";
}

TEST(HubSettings, SwitchesAreOnWithTheWordsOfHuggingfaceHub) {
  for (const char* word : {"1", "on", "Yes", "TRUE"}) {
    EXPECT_TRUE(settings_with({{"HF_HUB_OFFLINE", word}}).offline) << word;
    EXPECT_TRUE(settings_with({{"TRANSFORMERS_OFFLINE", word}}).offline) << word;
    EXPECT_FALSE(settings_with({{"HF_HUB_DISABLE_SYMLINKS", word}}).symlinks) << word;
  }
  for (const char* word : {"", "0", "no", "false", "2"}) {
    EXPECT_FALSE(settings_with({{"HF_HUB_OFFLINE", word}}).offline) << word;
    EXPECT_TRUE(settings_with({{"HF_HUB_DISABLE_SYMLINKS", word}}).symlinks) << word;
  }
}

TEST(HubSettings, TimesAreWholeSecondsAboveZero) {
  const Settings settings = settings_with({{"HF_HUB_ETAG_TIMEOUT", "1"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "300"}});
  EXPECT_EQ(settings.connect_timeout_s, 1);
  EXPECT_EQ(settings.stall_timeout_s, 300);
  for (const char* text : {"0", "-1", "1.5", "1s", "x", "99999999999"}) {
    for (const char* name : {"HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"}) {
      const std::string message = error_of([&] { settings_with({{name, text}}); });
      EXPECT_TRUE(contains(message, name) && contains(message, "a number of seconds")) << text << message;
    }
  }
}

TEST(HubSettings, AnEndpointIsAUrlWithoutSlashesAtItsEnd) {
  EXPECT_EQ(settings_with({{"HF_ENDPOINT", "http://mirror:8080//"}}).endpoint, "http://mirror:8080");
  for (const char* url : {"mirror", "ftp://x", "https://a b", "https://\xc3\xa9", "https://x\n"})
    EXPECT_TRUE(contains(error_of([&] {
                           settings_with({{"HF_ENDPOINT", url}});
                         }),
                         "HF_ENDPOINT: expected a URL"))
        << url;
}

TEST(HubSettings, AUserInTheEndpointIsNotPartOfIt) {
  const auto with = [](const char* url) { return settings_with({{"HF_ENDPOINT", url}}); };
  EXPECT_EQ(with("https://me:p%40ss@mirror:8080/hub/").endpoint, "https://mirror:8080/hub");
  EXPECT_EQ(with("https://me:p%40ss@mirror").authorization, "Basic bWU6cEBzcw==");
  EXPECT_EQ(with("https://me:a@b@mirror").endpoint, "https://mirror") << "the last @ ends the password";
  EXPECT_EQ(with("https://me:100%@mirror").authorization, "Basic bWU6MTAwJQ==");
  EXPECT_EQ(with("https://mirror/a@b").endpoint, "https://mirror/a@b");
  EXPECT_EQ(with("https://mirror/a@b").authorization, "");
  for (const char* url : {"ftp://me:secret@mirror", "me:secret@mirror", "https://me:secret@mir ror"}) {
    const std::string message = error_of([&] { with(url); });
    EXPECT_TRUE(contains(message, "HF_ENDPOINT: expected a URL")) << message;
    EXPECT_FALSE(contains(message, "secret")) << message;
  }
}

TEST(HubSettings, TheTokenIsTheFirstThatIsGiven) {
  const fs::path home = testing::scratch_folder(), other = home / "other";
  fs::create_directories(home / ".cache/huggingface");
  std::ofstream(home / ".cache/huggingface/token") << " hf_file\r\n";
  std::ofstream(other) << "hf_other\n";
  EXPECT_EQ(settings_with({}, home).token, "hf_file");
  EXPECT_EQ(settings_with({{"HF_TOKEN_PATH", "~/other"}}, home).token, "hf_other");
  EXPECT_EQ(settings_with({{"HF_TOKEN_PATH", "~/absent"}}, home).token, "");
  EXPECT_EQ(settings_with({{"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}, home).token, "");
  EXPECT_EQ(settings_with({{"HUGGING_FACE_HUB_TOKEN", "hf_old"}}, home).token, "hf_old");
  EXPECT_EQ(settings_with({{"HUGGING_FACE_HUB_TOKEN", "hf_old"}, {"HF_TOKEN", "\thf_new "}}, home).token, "hf_new");
  EXPECT_EQ(settings_with({{"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}, {"HF_TOKEN", "hf_new"}}, home).token, "hf_new");
}

// It becomes part of a header, where a line end would begin another one.
TEST(HubSettings, ATokenOfOtherCharactersIsAnErrorThatDoesNotShowIt) {
  for (const char* text : {"hf_a\r\nX: y", "hf a", "hf_\xc3\xa9", "hf_\x7f"}) {
    const std::string message = error_of([&] { settings_with({{"HF_TOKEN", text}}); });
    EXPECT_TRUE(contains(message, "HF_TOKEN: expected a token of printable characters")) << message;
    EXPECT_FALSE(contains(message, text));
  }
}

TEST(HubSettings, RefusalsNameTheVariableAndItsValue) {
  const auto refusal = [](const char* name, const char* value) {
    return error_of([&] { settings_with({{name, value}}); });
  };
  EXPECT_ERROR(refusal("HF_HUB_ETAG_TIMEOUT", "0"), "HF_HUB_ETAG_TIMEOUT", "\"0\"");
  EXPECT_ERROR(refusal("HF_HUB_DOWNLOAD_TIMEOUT", "1s"), "HF_HUB_DOWNLOAD_TIMEOUT", "\"1s\"");
  EXPECT_ERROR(refusal("HF_ENDPOINT", "mirror/"), "HF_ENDPOINT", "\"mirror\"");
  EXPECT_ERROR(refusal("HUGGING_FACE_HUB_TOKEN", "a b"), "HUGGING_FACE_HUB_TOKEN", "other characters");
  const fs::path home = testing::scratch_folder();
  std::ofstream(home / "token") << "a b";
  EXPECT_ERROR(error_of([&] {
                 settings_with({{"HF_HOME", home.string()}});
               }),
               (home / "token").string(), "other characters");
}

TEST(HubSettings, TheTokensFileIsInTheHubsHome) {
  const fs::path home = testing::scratch_folder(), other = testing::scratch_folder();
  std::ofstream(home / "token") << "hf_home";
  fs::create_directories(other / "huggingface");
  std::ofstream(other / "huggingface/token") << "hf_xdg";
  EXPECT_EQ(settings_with({{"HF_HOME", home.string()}}).token, "hf_home");
  EXPECT_EQ(settings_with({{"XDG_CACHE_HOME", other.string()}}).token, "hf_xdg");
  EXPECT_EQ(settings_with({{"XDG_CACHE_HOME", other.string()}, {"HF_HOME", home.string()}}).token, "hf_home");
  EXPECT_EQ(settings_with({{"HF_HOME", "~/x"}}, home).cache, home / "x/hub");
  EXPECT_EQ(settings_with({{"XDG_CACHE_HOME", "~/x"}}, home).cache, home / "x/huggingface/hub");
  std::ofstream(home / "token") << " \n";
  EXPECT_EQ(settings_with({{"HF_HOME", home.string()}}).token, "");
}

TEST(HubSettings, AnEndpointMayBePlainHttp) {
  EXPECT_EQ(settings_with({{"HF_ENDPOINT", "https://mirror/path/"}}).endpoint, "https://mirror/path");
  EXPECT_EQ(settings_with({{"HF_ENDPOINT", "http://mirror"}}).endpoint, "http://mirror");
}

}  // namespace
}  // namespace vitrail::hub
