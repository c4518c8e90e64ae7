// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/request_options_internal.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

RequestOptions options_of(const Parameters& given) {
  RequestOptions options;
  options.add(given);
  return options;
}

TEST(RequestOptions, AnIntegerIsWithinItsLimitsWithoutOtherCharacters) {
  const auto value = [](const std::string& text) { return options_of({{"top", text}}).integer("top", 5, 1, 100); };
  EXPECT_EQ(value("1"), 1);
  EXPECT_EQ(value("100"), 100);
  EXPECT_EQ(RequestOptions().integer("top", 5, 1, 100), 5);
  for (const char* text : {"0", "101", "-1", "", " 1", "1 ", "1.0", "1e1", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(error_of([&] { value(text); }), str("top: expected an integer from 1 to 100, got '", text, "'"));
  }
}

TEST(RequestOptions, IntegersAreBetweenCommas) {
  const auto value = [](const std::string& text) { return options_of({{"layer", text}}).integers("layer", {7}); };
  using List = std::vector<int64_t>;
  EXPECT_EQ(RequestOptions().integers("layer", {7, 8}), (List{7, 8}));
  EXPECT_EQ(value("3"), List{3});
  EXPECT_EQ(value("-1,-4,0"), (List{-1, -4, 0}));
  EXPECT_EQ(value("2147483647"), List{2147483647});
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1, 2", "x", "2147483648"}) {
    EXPECT_TRUE(contains(error_of([&] { value(text); }), "layer: expected an integer")) << text;
  }
}

TEST(RequestOptions, ANumberIsFiniteAndWithinItsLimits) {
  const auto value = [](const std::string& text) { return options_of({{"opacity", text}}).number("opacity", 2, 0, 1); };
  EXPECT_EQ(value("0"), 0);
  EXPECT_EQ(value("1"), 1);
  EXPECT_EQ(value("0.25"), 0.25);
  EXPECT_EQ(value("1e-3"), 1e-3);
  EXPECT_EQ(RequestOptions().number("opacity", 2, 0, 1), 2);
  for (const char* text : {"", "-0.1", "1.01", "nan", "inf", "-inf", "0.5x", " 1"}) {
    EXPECT_TRUE(contains(error_of([&] { value(text); }), "opacity: expected a number from 0 to 1")) << text;
  }
}

TEST(RequestOptions, AFlagIsTrueWithoutAValue) {
  const auto value = [](const std::string& text) { return options_of({{"exif", text}}).flag("exif"); };
  EXPECT_FALSE(RequestOptions().flag("exif"));
  for (const char* text : {"", "true", "1"}) EXPECT_TRUE(value(text)) << text;
  for (const char* text : {"false", "0"}) EXPECT_FALSE(value(text)) << text;
  for (const char* text : {"2", "yes", "True", "00"}) EXPECT_THROW(value(text), Error) << text;
}

TEST(RequestOptions, OneOfIsAKnownValueByDefaultTheFirst) {
  EXPECT_EQ(RequestOptions().one_of("head", {"mean", "all"}), "mean");
  EXPECT_EQ(options_of({{"head", "all"}}).one_of("head", {"mean", "all"}), "all");
  EXPECT_EQ(error_of([] {
              options_of({{"head", "al"}}).one_of("head", {"mean", "all"});
            }),
            "head: expected one of mean, all, got 'al'");
}

TEST(RequestOptions, OnlyListsMayBeRepeated) {
  RequestOptions options = options_of({{"point", "1,2"}, {"top", "3"}, {"point", "4,5"}});
  EXPECT_EQ(options.texts("point"), (std::vector<std::string>{"1,2", "4,5"}));
  EXPECT_EQ(options.text("top"), "3");
  EXPECT_EQ(options.text("none"), std::nullopt);
  EXPECT_EQ(options.text("none", "preset"), "preset");
  EXPECT_EQ(error_of([&] { options.text("point"); }), "point: expected one value, got 2");
}

TEST(RequestOptions, AnOptionThatNobodyTakesIsAnErrorThatNamesSimilarOnes) {
  RequestOptions options = options_of({{"top", "3"}, {"tpo", "4"}});
  options.text("top");
  options.text("labels");
  const std::string similar = error_of([&] { options.require_all_taken(); });
  EXPECT_TRUE(contains(similar, "an option of this route: top, got 'tpo'")) << similar;
  options.text("tpo");
  options.require_all_taken();
  options.add("zzzzzzzz", "");
  const std::string all = error_of([&] { options.require_all_taken(); });
  EXPECT_TRUE(contains(all, "labels, top, tpo, got 'zzzzzzzz'")) << all;
}

}  // namespace
}  // namespace vitrail::serve
