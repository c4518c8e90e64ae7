// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vitrail/serve/http_error.h"
#include "vitrail/serve/target_internal.h"

namespace vitrail::serve {
namespace {

using Path = std::vector<std::string>;

TEST(Target, SegmentsAreDecodedAndEmptyOnesLeftOut) {
  const auto path = [](const char* target) { return parse_target(target).path; };
  EXPECT_EQ(path("/"), Path{});
  EXPECT_EQ(path("/v1/classify"), (Path{"v1", "classify"}));
  EXPECT_EQ(path("//v1//classify/"), (Path{"v1", "classify"}));
  EXPECT_EQ(path("/a%2Fb/c%20d+e?x"), (Path{"a/b", "c d+e"}));
  EXPECT_EQ(path("/%41%6a%6A"), Path{"Ajj"});
}

TEST(Target, EveryHexadecimalDigitIsOneInBothPlaces) {
  for (int byte = 1; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool is_digit = std::string_view("0123456789abcdefABCDEF").find(c) != std::string_view::npos;
    for (const std::string& escape : {std::string{'%', c, '5'}, std::string{'%', '5', c}}) {
      if (!is_digit) {
        EXPECT_THROW(parse_target("/" + escape), HttpError) << escape;
        continue;
      }
      const std::string decoded(1, static_cast<char>(std::stoi(escape.substr(1), nullptr, 16)));
      EXPECT_EQ(parse_target("/" + escape).path, Path{decoded}) << escape;
      EXPECT_EQ(parse_target("/?x=" + escape).query, (Parameters{{"x", decoded}})) << escape;
    }
  }
}

TEST(Target, ParametersAreDecodedAndKeepTheirOrder) {
  const auto query = [](const char* target) { return parse_target(target).query; };
  EXPECT_EQ(query("/a"), Parameters{});
  EXPECT_EQ(query("/a?"), Parameters{});
  EXPECT_EQ(query("/a?top=3&exif&&label=a+b%2Bc&top=4&x=1=2&=y"),
            (Parameters{{"top", "3"}, {"exif", ""}, {"label", "a b+c"}, {"top", "4"}, {"x", "1=2"}, {"", "y"}}));
  EXPECT_EQ(query("/a?b?c=d"), (Parameters{{"b?c", "d"}}));
  EXPECT_EQ(query("/a?x=%FF%01"), (Parameters{{"x", "\xff\x01"}}));
}

// Clients of proxies name the host in the target as well.
TEST(Target, TheHostOfTheAbsoluteFormIsLeftOut) {
  for (const std::string host : {"http://a", "https://a:8080", "HTTP://[::1]:80", "hTTps://127.0.0.1"}) {
    EXPECT_EQ(parse_target(host).path, Path{}) << host;
    EXPECT_EQ(parse_target(host + "/").path, Path{}) << host;
    EXPECT_EQ(parse_target(host + "/v1/a%20b?x=/").path, (Path{"v1", "a b"})) << host;
    EXPECT_EQ(parse_target(host + "/v1?x=/").query, (Parameters{{"x", "/"}})) << host;
    EXPECT_EQ(parse_target(host + "?x=http://b/c").query, (Parameters{{"x", "http://b/c"}})) << host;
    EXPECT_EQ(parse_target(host + "?x").path, Path{}) << host;
  }
  EXPECT_EQ(parse_target("/http://a/b").path, (Path{"http:", "a", "b"}));
}

TEST(Target, DamagedEscapesAndRelativeTargetsAreErrors) {
  for (const char* target : {"", "a", "?a", "http://", "http:///a", "https://?a", "http:/a", "ftp://host/", "a:80", "*",
                             "/%", "/%4", "/%4g", "/%g4", "/%%41", "/a?b=%", "/a?%1", "/%00", "/a?b=%00"}) {
    try {
      parse_target(target);
      ADD_FAILURE() << target;
    } catch (const HttpError& error) {
      EXPECT_EQ(error.status(), 400) << target;
    }
  }
  EXPECT_EQ(parse_target("/%10").path, Path{"\x10"});  // only one digit is zero
  EXPECT_EQ(parse_target("/%01").path, Path{"\x01"});
}

}  // namespace
}  // namespace vitrail::serve
