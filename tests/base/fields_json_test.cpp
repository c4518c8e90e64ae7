// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/fields_json_internal.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/errors.h"

namespace vitrail {
namespace {

// The values of a description before and after they are read from JSON.
struct Values {
  int64_t integer = 5;
  std::optional<int64_t> optional_integer = 6;
  double number = 0.5;
  std::optional<double> optional_number = 0.25;
  bool boolean = true;
  std::string text = "text", choice = "b";
  std::vector<double> numbers{1, 2};
  std::vector<std::string> texts{"x"};
  std::array<double, 2> pair{0.5, 1};
  std::array<int64_t, 2> integer_pair{1, 3};
  int64_t open_integer = 4;
  double open_number = 1.5, any_number = -1;
  bool inner_boolean = false;
  bool operator==(const Values&) const = default;
};

void describe(Fields& fields, Values& values) {
  fields.integer("integer", values.integer, 2, 9);
  fields.integer("optional_integer", values.optional_integer, 2);
  fields.number("number", values.number, {0, 1});
  fields.number("optional_number", values.optional_number, {0, 1});
  fields.boolean("boolean", values.boolean);
  fields.text("text", values.text);
  fields.choice("choice", values.choice, {"a", "b"});
  fields.numbers("numbers", values.numbers, {0, 3});
  fields.texts("texts", values.texts);
  fields.pair("pair", values.pair, {0, 2});
  fields.pair("integer_pair", values.integer_pair, 1);
  constexpr double kMax = std::numeric_limits<double>::max();
  fields.integer("open_integer", values.open_integer, 3);
  fields.number("open_number", values.open_number, {1, kMax});
  fields.number("any_number", values.any_number, {std::numeric_limits<double>::lowest(), kMax});
  fields.object("inner", [&](Fields& inner) { inner.boolean("boolean", values.inner_boolean); });
}

std::vector<std::string> problems_of(const std::string& json, Values& values) {
  const auto parsed = nlohmann::ordered_json::parse(json);
  std::vector<Error> problems;
  JsonFieldReader reader(parsed, "at.", problems);
  describe(reader, values);
  reader.finish();
  std::vector<std::string> messages;
  for (const Error& problem : problems) messages.emplace_back(problem.what());
  return messages;
}

Values read(const std::string& json) {
  Values values;
  EXPECT_EQ(problems_of(json, values), std::vector<std::string>{}) << json;
  return values;
}

TEST(JsonFieldReader, AbsentFieldsKeepTheirValues) { EXPECT_EQ(read("{}"), Values()); }

TEST(JsonFieldReader, NullIsTheAbsenceOfAValue) {
  EXPECT_EQ(read(R"({"optional_integer": null})").optional_integer, std::nullopt);
  EXPECT_EQ(read(R"({"optional_number": null})").optional_number, std::nullopt);
  EXPECT_EQ(read(R"({"text": null})").text, "");
  EXPECT_TRUE(read(R"({"numbers": null})").numbers.empty());
  EXPECT_TRUE(read(R"({"texts": null})").texts.empty());
}

TEST(JsonFieldReader, BoundsAreInclusive) {
  EXPECT_EQ(read(R"({"integer": 2})").integer, 2);
  EXPECT_EQ(read(R"({"integer": 9})").integer, 9);
  EXPECT_EQ(read(R"({"integer": 9.0})").integer, 9);
  EXPECT_EQ(read(R"({"optional_integer": 2})").optional_integer, 2);
  EXPECT_EQ(read(R"({"number": 0})").number, 0);
  EXPECT_EQ(read(R"({"number": 1})").number, 1);
  EXPECT_EQ(read(R"({"optional_number": 1})").optional_number, 1);
  EXPECT_EQ(read(R"({"numbers": [0, 3]})").numbers, (std::vector<double>{0, 3}));
  EXPECT_TRUE(read(R"({"numbers": []})").numbers.empty());
  EXPECT_EQ(read(R"({"integer_pair": [1, 1000000]})").integer_pair[1], 1000000);
  EXPECT_EQ(read(R"({"open_integer": 3})").open_integer, 3);
  EXPECT_EQ(read(R"({"open_integer": 9007199254740992})").open_integer, int64_t{1} << 53);
  EXPECT_EQ(read(R"({"open_number": 1})").open_number, 1);
  EXPECT_EQ(read(R"({"any_number": -1e300})").any_number, -1e300);
  EXPECT_TRUE(read(R"({"inner": {"boolean": true}})").inner_boolean);
}

TEST(JsonFieldReader, OtherValuesAreProblemsAndChangeNothing) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"integer": 1})", "at.integer: expected an integer from 2 to 9, got 1"},
      {R"({"integer": 10})", "at.integer: expected an integer from 2 to 9, got 10"},
      {R"({"integer": 2.5})", "at.integer: expected an integer from 2 to 9, got 2.5"},
      {R"({"integer": null})", "at.integer: expected an integer from 2 to 9, got null"},
      {R"({"integer": "3"})", "at.integer: expected an integer from 2 to 9, got \"3\""},
      {R"({"optional_integer": 1})", "at.optional_integer: expected an integer of at least 2 or null, got 1"},
      {R"({"number": -0.1})", "at.number: expected a number from 0 to 1, got -0.1"},
      {R"({"number": null})", "at.number: expected a number from 0 to 1, got null"},
      {R"({"optional_number": 1.1})", "at.optional_number: expected a number from 0 to 1 or null, got 1.1"},
      {R"({"boolean": 1})", "at.boolean: expected true or false, got 1"},
      {R"({"text": 1})", "at.text: expected a string, got 1"},
      {R"({"choice": "c"})", "at.choice: expected one of \"a\", \"b\", got \"c\""},
      {R"({"choice": null})", "at.choice: expected one of \"a\", \"b\", got null"},
      {R"({"numbers": [1, 3.5]})", "at.numbers: expected an array: each a number from 0 to 3, got [1,3.5]"},
      {R"({"numbers": 1})", "at.numbers: expected an array: each a number from 0 to 3, got 1"},
      {R"({"texts": ["a", 1]})", "at.texts: expected an array of strings, got [\"a\",1]"},
      {R"({"pair": [1]})", "at.pair: expected an array of two numbers, got [1]"},
      {R"({"pair": [1, 1, 1]})", "at.pair: expected an array of two numbers, got [1,1,1]"},
      {R"({"integer_pair": [1]})", "at.integer_pair: expected an array of two numbers, got [1]"},
      {R"({"integer_pair": [0, 1]})", "at.integer_pair: expected an array: each a number from 1 to 1e+06, got [0,1]"},
      {R"({"integer_pair": [1, 2.5]})", "at.integer_pair: expected an array of two integers, got [1,2.5]"},
      {R"({"integer_pair": [1.5, 3]})", "at.integer_pair: expected an array of two integers, got [1.5,3]"},
      {R"({"integer_pair": [1, 1000001]})",
       "at.integer_pair: expected an array: each a number from 1 to 1e+06, got [1,1000001]"},
      {R"({"pair": [-0.5, 1]})", "at.pair: expected an array: each a number from 0 to 2, got [-0.5,1]"},
      {R"({"pair": "x"})", "at.pair: expected an array: each a number from 0 to 2, got \"x\""},
      {R"({"texts": "x"})", "at.texts: expected an array of strings, got \"x\""},
      {R"({"number": "x"})", "at.number: expected a number from 0 to 1, got \"x\""},
      {R"({"number": 1.5})", "at.number: expected a number from 0 to 1, got 1.5"},
      {R"({"optional_number": "x"})", "at.optional_number: expected a number from 0 to 1 or null, got \"x\""},
      {R"({"optional_integer": 2.5})", "at.optional_integer: expected an integer of at least 2 or null, got 2.5"},
      {R"({"open_integer": 2})", "at.open_integer: expected an integer of at least 3, got 2"},
      {R"({"open_number": 0.5})", "at.open_number: expected a number of at least 1, got 0.5"},
      {R"({"any_number": true})", "at.any_number: expected a number, got true"},
      {R"({"inner": 1})", "at.inner: expected an object, got 1"},
      {R"({"inner": {"boolean": 1}})", "at.inner.boolean: expected true or false, got 1"},
      {R"({"inner": {"bolean": true}})",
       "at.inner.bolean: expected one of the fields boolean, got an unknown field; "
       "did you mean boolean?"},
      {R"({"inner": {"x": true}})", "at.inner.x: expected one of the fields boolean, got an unknown field"},
      {"[]", "at: expected an object, got []"}};
  for (const auto& [json, problem] : wrong) {
    Values values;
    EXPECT_EQ(problems_of(json, values), std::vector<std::string>{problem});
    EXPECT_EQ(values, Values()) << json;
  }
}

TEST(JsonFieldReader, LongValuesAreShortened) {
  Values values;
  const std::vector<std::string> problems = problems_of(R"({"boolean": ")" + std::string(500, 'x') + "\"}", values);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_ERROR(problems[0], "at.boolean", "\"" + std::string(56, 'x') + "...");
  const std::string whole = '"' + std::string(58, 'x') + '"';  // 60 characters
  EXPECT_ERROR(problems_of("{\"boolean\": " + whole + "}", values)[0], "at.boolean", whole);
}

TEST(JsonFields, WhatIsWrittenIsReadAgain) {
  Values other;
  other.integer = 2;
  other.optional_integer.reset();
  other.number = 0.1;
  other.optional_number.reset();
  other.boolean = false;
  other.text = "é\"\\";
  other.choice = "a";
  other.numbers = {};
  other.texts = {"a", ""};
  other.pair = {0, 2};
  other.integer_pair = {7, 7};
  other.open_integer = 3;
  other.open_number = 2.5;
  other.any_number = -7;
  other.inner_boolean = true;
  for (Values values : {Values(), other}) {
    EXPECT_EQ(read(json_of_fields(describe, values).dump()), values);
  }
}

}  // namespace
}  // namespace vitrail
