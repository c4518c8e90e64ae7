// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/json_checks_internal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vitrail {
namespace {

TEST(JsonDepth, CountsOpenObjectsAndArrays) {
  EXPECT_EQ(json_depth("1"), 0);
  EXPECT_EQ(json_depth("{}"), 1);
  EXPECT_EQ(json_depth(R"([{"a": [1]}, {"b": 2}])"), 3);
  EXPECT_EQ(json_depth("[[[[["), 5);
}

TEST(JsonDepth, LeavesOutBracketsInStrings) {
  EXPECT_EQ(json_depth(R"({"[[[": "{{\"[[\\"})"), 1);
  EXPECT_EQ(json_depth(R"(["\\", ["]"]])"), 2);
}

TEST(JsonContent, CountsValues) {
  EXPECT_EQ(json_content(R"({"a": [1, -2, 3.5, null, true], "b": {"a": "x"}})", {.values = 100}).values, 9u);
  EXPECT_EQ(json_content("[1, 2, 3, 4, 5, 6]", {.values = 3}).values, 4u) << "one more than the limit";
  EXPECT_FALSE(json_content("[1, 2", {.values = 100}).repeated_key);
}

TEST(JsonContent, FindsRepeatedKeysOfOneObject) {
  EXPECT_FALSE(json_content(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})", {.values = 100}).repeated_key);
  EXPECT_FALSE(json_content(R"({"a": {"b": 1}, "b": 2})", {.values = 100}).repeated_key) << "inside and behind";
  EXPECT_EQ(json_content(R"({"a": {"c": 1}, "b": {"c": 1, "d": 2, "c": 3}})", {.values = 100}).repeated_key, "c");
  EXPECT_EQ(json_content(R"([{"a": 1, "\u0061": 2}])", {.values = 100}).repeated_key, "a") << "escaped";
}

// With the square of a million objects this would take hours.
TEST(JsonContent, TakesLinearTime) {
  std::string text = "[{}";
  for (int i = 1; i < 1'000'000; ++i) text += ",{}";
  EXPECT_EQ(json_content(text + "]", {.values = 2'000'000}).values, 1'000'001u);
}

TEST(JsonFault, SaysWhereAndWhyWithoutTheParsersNumbers) {
  const auto fault = [](const std::string& text) {
    try {
      return nlohmann::json::parse(text).dump();
    } catch (const nlohmann::json::exception& error) {
      return json_fault(text, error);
    }
  };
  EXPECT_EQ(fault(""), "nothing");
  EXPECT_EQ(fault(" \n\t"), "nothing");
  EXPECT_TRUE(fault("{\n\"a\": ,}").starts_with("line 2, column 6: syntax error while parsing value"));
  EXPECT_TRUE(fault("[1e999]").starts_with("number overflow parsing '1e999'")) << fault("[1e999]");
}

TEST(JsonDepth, OfTextThatClosesMoreThanItOpens) {
  EXPECT_EQ(json_depth(""), 0);
  EXPECT_EQ(json_depth("]]"), 0);
  EXPECT_EQ(json_depth("[]{}[[]]"), 2);
  EXPECT_EQ(json_depth(R"(\"[")"), 0) << "an escape outside of strings is none: the bracket is in one";
  EXPECT_EQ(json_depth(R"(["a\)"), 1);
}

TEST(JsonContent, CountsEachKindOfValueOnce) {
  for (const char* text : {"null", "true", "false", "1", "-1", "1.5", "\"x\"", "{}", "[]"})
    EXPECT_EQ(json_content(text, {.values = 100}).values, 1u) << text;
  EXPECT_EQ(json_content(R"({"a": {}, "b": []})", {.values = 100}).values, 3u) << "keys are no values";
  EXPECT_EQ(json_content("[1, 2]", {.values = 3}).values, 3u) << "as many as the limit";
  EXPECT_EQ(json_content("[1, 2]", {.values = 0}).values, 1u);
  EXPECT_EQ(json_content("[1, x, 2]", {.values = 100}).values, 2u) << "up to the fault";
}

TEST(JsonContent, StopsAtTheFirstRepeatedKeyOrAtTheLimit) {
  const JsonContent content = json_content(R"({"b": 1, "b": 2, "a": 3, "a": 4})", {.values = 100});
  EXPECT_EQ(content.repeated_key, "b");
  EXPECT_EQ(content.values, 2u);
  EXPECT_FALSE(json_content(R"([1, 2, {"a": 1, "a": 2}])", {.values = 2}).repeated_key) << "behind the limit";
}

TEST(JsonFault, OfAnotherExceptionIsItsText) {
  EXPECT_EQ(json_fault("x", std::runtime_error("out of paper")), "out of paper");
  EXPECT_EQ(json_fault("x", std::runtime_error("[code 7] out of paper")), "out of paper");
  EXPECT_EQ(json_fault("x", std::runtime_error("[code 7] parse error at line 3")), "line 3");
  EXPECT_EQ(json_fault(" \r", std::runtime_error("out of paper")), "nothing");
}

}  // namespace
}  // namespace vitrail
