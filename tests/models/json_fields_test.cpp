// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/json_fields_internal.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace vitrail::models {
namespace {

using testing::contains;
using testing::error_of;

TEST(JsonFields, IntegersMayBeWrittenAsNumbersWithoutAFraction) {
  const auto integer = [](const char* text) { return integer_of(Json::parse(text)); };
  EXPECT_EQ(integer("12"), 12);
  EXPECT_EQ(integer("-12"), -12);
  EXPECT_EQ(integer("12.0"), 12);
  EXPECT_EQ(integer("1e3"), 1000);
  EXPECT_EQ(integer("1e15"), 1'000'000'000'000'000);
  EXPECT_EQ(integer("-1e15"), -1'000'000'000'000'000);
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  for (const char* text : {"12.5", "-0.5", "1.1e15", "1e16", "9223372036854775808", "\"12\"", "true", "null", "[12]"}) {
    EXPECT_EQ(integer(text), std::nullopt) << text;
  }
}

TEST(JsonFields, AFieldIsAbsentIfItIsNull) {
  const Json object = Json::parse(R"({"n": null, "i": 3, "d": 0.5, "b": true, "t": "x", "l": [1, 2.5], "o": {"i": 4},
                                      "s": [3, 4.0], "q": [3, 4.5], "r": [1, 2, 3], "m": [1, "a"]})");
  const JsonFields fields(object, "file");
  EXPECT_FALSE(fields.has("n"));
  EXPECT_FALSE(fields.has("absent"));
  EXPECT_EQ(fields.integer("n"), std::nullopt);
  EXPECT_EQ(fields.number("absent"), std::nullopt);
  EXPECT_EQ(fields.boolean("n"), std::nullopt);
  EXPECT_EQ(fields.text("n"), std::nullopt);
  EXPECT_EQ(fields.numbers("n"), std::nullopt);
  EXPECT_EQ(fields.size("n"), std::nullopt);
  EXPECT_EQ(fields.integer("i"), 3);
  EXPECT_EQ(fields.number("i"), 3.0);
  EXPECT_EQ(fields.number("d"), 0.5);
  EXPECT_EQ(fields.boolean("b"), true);
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.numbers("l"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(fields.nested("o").integer("i"), 4);
  EXPECT_FALSE(fields.nested("n").has("i"));
  EXPECT_TRUE(fields.at_or_null("absent").is_null());
  EXPECT_EQ(fields.size("i"), (std::array<int64_t, 2>{3, 3}));
  EXPECT_EQ(fields.size("s"), (std::array<int64_t, 2>{3, 4}));
  const auto fails = [&](const char* message, const auto& action) {
    const std::string got = error_of([&] { action(); });
    EXPECT_TRUE(got.starts_with(message)) << got;
  };
  fails("file: d: expected an integer, got 0.5", [&] { fields.integer("d"); });
  fails("file: t: expected a number", [&] { fields.number("t"); });
  fails("file: i: expected true or false", [&] { fields.boolean("i"); });
  fails("file: i: expected a string", [&] { fields.text("i"); });
  fails("file: i: expected an array of numbers", [&] { fields.numbers("i"); });
  fails("file: m: expected an array of numbers", [&] { fields.numbers("m"); });
  EXPECT_EQ(fields.integers("s"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(fields.integers("n"), std::nullopt);
  fails("file: i: expected an array of integers", [&] { fields.integers("i"); });
  fails("file: q: expected an array of integers", [&] { fields.integers("q"); });
  for (const char* key : {"q", "r", "m", "t", "d"}) {
    fails((std::string("file: ") + key + ": expected an integer or [height, width]").c_str(),
          [&] { fields.size(key); });
  }
  fails("file: i: expected a JSON object", [&] { fields.nested("i"); });
  fails("file: o: i: expected a string", [&] { fields.nested("o").text("i"); });
  fails("list: expected a JSON object, got [1]", [] {
    const Json list = Json::array({1});
    JsonFields(list, "list");
  });
}

TEST(JsonFields, NestingHasALimitAndFaultsAPlace) {
  const auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_NO_THROW(parse_json(nested(200), "file"));
  EXPECT_TRUE(contains(error_of([&] { parse_json(nested(201), "file"); }), "at most 200 levels of nesting"));
  EXPECT_TRUE(error_of([] { parse_json("{\"a\": }", "file"); }).starts_with("file: expected JSON, got "));
}

}  // namespace
}  // namespace vitrail::models
