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

TEST(Target, ParametersAreDecodedAndKeepTheirOrder) {
  const auto query = [](const char* target) { return parse_target(target).query; };
  EXPECT_EQ(query("/a"), Parameters{});
  EXPECT_EQ(query("/a?"), Parameters{});
  EXPECT_EQ(query("/a?top=3&exif&&label=a+b%2Bc&top=4&x=1=2&=y"),
            (Parameters{{"top", "3"}, {"exif", ""}, {"label", "a b+c"}, {"top", "4"}, {"x", "1=2"}, {"", "y"}}));
  EXPECT_EQ(query("/a?b?c=d"), (Parameters{{"b?c", "d"}}));
  EXPECT_EQ(query("/a?x=%FF%01"), (Parameters{{"x", "\xff\x01"}}));
}

TEST(Target, DamagedEscapesAndRelativeTargetsAreErrors) {
  for (const char* target : {"", "a", "?a", "http://host/", "*", "/%", "/%4", "/%4g", "/%g4", "/%%41", "/a?b=%",
                             "/a?%1", "/%00", "/a?b=%00"}) {
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
