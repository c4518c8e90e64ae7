// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/json_body_internal.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;

TEST(JsonBody, NestingHasALimit) {
  EXPECT_EQ(parse_json("[[[1]]]", 3), json::parse("[[[1]]]"));
  for (const char* text : {"[[[[1]]]]", "[[[[]]]]", "{\"a\":[{\"b\":{}}]}"}) {
    EXPECT_TRUE(contains(error_of([&] { parse_json(text, 3); }), "nested more than 3 levels deep")) << text;
  }
  EXPECT_EQ(parse_json("\"[[[[\"", 3), "[[[[");
}

TEST(JsonBody, MalformedTextAndRepeatedKeysAreErrorsOfTheRequest) {
  for (const auto& [text, message] :
       {std::pair("", "malformed JSON at byte 1"), std::pair("{\"a\": 1", "malformed JSON at byte 8"),
        std::pair("[1,]", "malformed JSON at byte 4"), std::pair("1e999", "malformed JSON"),
        std::pair("{\"a\": 1, \"a\": 2}", "JSON with a duplicate key: \"a\""),
        std::pair("{\"b\": {\"\\u0061\": 1, \"a\": 2}}", "JSON with a duplicate key: \"a\"")}) {
    try {
      parse_json(text, 9);
      ADD_FAILURE() << text;
    } catch (const HttpError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_TRUE(contains(error.what(), message)) << error.what();
    }
  }
  EXPECT_EQ(parse_json("[{\"a\": 1}, {\"a\": 2}]", 9).size(), 2U);  // The keys belong to different objects.
}

// What small texts name may need much memory: nested lists, keys, numbers, texts.
TEST(JsonBody, TheMemoryOfTheValuesHasALimit) {
  const auto needed = [](const std::string& text) {
    size_t bytes = 0;
    parse_json(text, 9, {.reserve = [&](size_t size) { bytes = size; }});
    return bytes;
  };
  const auto repeated = [](const std::string& piece, const std::string& last) {
    std::string text = "[";
    for (int i = 0; i < 1000; ++i) text += piece + ",";
    return text + last + "]";
  };
  EXPECT_GE(needed(repeated("0", "0")), 1000 * 2 * sizeof(json));
  EXPECT_GE(needed(repeated("[]", "0")), 1000 * (2 * sizeof(json) + sizeof(json::array_t)));
  EXPECT_GE(needed(repeated("{}", "0")), 1000 * (2 * sizeof(json) + sizeof(json::object_t)));
  EXPECT_GE(needed(repeated(R"({"a":0})", "0")), 1000 * (4 * sizeof(json) + 2 * sizeof(std::string)));
  EXPECT_GE(needed('"' + std::string(5000, 'x') + '"'), 5000U);
  EXPECT_LT(needed('"' + std::string(5000, 'x') + '"'), 6000U);
  for (const char* piece : {"0", "[]", "{}", "\"\"", R"({"a":0})"}) {
    const std::string text = repeated(piece, "0");
    const size_t bytes = needed(text);
    EXPECT_NO_THROW(parse_json(text, 9, {.bytes = bytes}));
    try {
      parse_json(text, 9, {.bytes = bytes - 1, .reserve = [](size_t) { FAIL(); }});
      ADD_FAILURE() << piece;
    } catch (const HttpError& error) {
      EXPECT_EQ(error.status(), 413) << error.what();
    }
  }
}

TEST(JsonBody, ParsingEndsWhenItsClientLeaves) {
  std::string text = "[";
  for (int i = 0; i < 100'000; ++i) text += "0,";
  int checks = 0;
  const auto check = [&] {
    if (++checks == 2) throw HttpError(499, "left");
  };
  EXPECT_EQ(error_of([&] { parse_json(text + "0]", 9, {.check = check}); }), "left");
  EXPECT_EQ(checks, 2);
}

TEST(JsonBody, MembersAreOfTheirType) {
  const json object = json::parse(R"({"a": 1, "t": "x"})");
  EXPECT_EQ(member(object, "a"), 1);
  EXPECT_EQ(error_of([&] { member(object, "b"); }), "body: expected the member \"b\", got none");
  EXPECT_EQ(error_of([] { member(json::array(), "b"); }), "body: expected a JSON object, got array");
  EXPECT_EQ(text_member(object, "t", "preset"), "x");
  EXPECT_EQ(text_member(object, "b", "preset"), "preset");
  EXPECT_EQ(error_of([&] { text_member(object, "a", ""); }), "a: expected a text, got number");
  EXPECT_EQ(error_of([] { text_member(json(1), "a", ""); }), "body: expected a JSON object, got number");
}

TEST(JsonBody, MembersAreOptionsAndListsAreRepeatedOnes) {
  RequestOptions options;
  add_options(json::parse(R"({"images": [{}], "top": 3, "opacity": 0.5, "exif": true, "head": "all",
                              "point": ["1,2", "3,4"], "none": []})"),
              "images", options);
  EXPECT_EQ(options.text("top"), "3");
  EXPECT_EQ(options.text("opacity"), "0.5");
  EXPECT_TRUE(options.flag("exif"));
  EXPECT_EQ(options.text("head"), "all");
  EXPECT_EQ(options.texts("point"), (std::vector<std::string>{"1,2", "3,4"}));
  EXPECT_TRUE(options.texts("none").empty());
  EXPECT_TRUE(options.texts("images").empty());
  for (const char* text : {R"({"a": null})", R"({"a": {}})", R"({"a": [[1]]})", R"({"a": [null]})"}) {
    EXPECT_TRUE(contains(error_of([&] { add_options(json::parse(text), "images", options); }),
                         "a: expected a text, a number, true or false"))
        << text;
  }
}

}  // namespace
}  // namespace vitrail::serve
