// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/added_tokens_internal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "vitrail/text/tokenizer_json_internal.h"

namespace vitrail::text {
namespace {

using Json = nlohmann::json;

// The parts, with tokens in brackets.
std::string parts_of(const AddedTokens& tokens, const std::string& text) {
  std::string parts;
  for (const TextPart& part : tokens.split(text)) {
    EXPECT_FALSE(part.text.empty());
    parts += part.id ? "[" + std::string(part.text) + "]" : std::string(part.text) + "|";
  }
  return parts;
}

TEST(AddedTokens, PartATextAtItsTokens) {
  const AddedTokens tokens({{.content = "<a>", .id = 1}, {.content = "é", .id = 2}, {.content = "", .id = 3}}, false);
  EXPECT_EQ(parts_of(tokens, "x<a>y z"), "x|[<a>]y z|");
  EXPECT_EQ(parts_of(tokens, "<a><a>é"), "[<a>][<a>][é]");
  EXPECT_EQ(parts_of(tokens, "<<a>>"), "<|[<a>]>|");
  EXPECT_EQ(parts_of(tokens, "<a"), "<a|");
  EXPECT_EQ(parts_of(tokens, ""), "");
  EXPECT_EQ(parts_of(AddedTokens({}, false), "x<a>"), "x<a>|");
}

TEST(AddedTokens, AreThoseOfTheTextOrOfTheNormalisedOne) {
  const std::vector<AddedToken> tokens{{.content = "<a>", .id = 1}, {.content = "<b>", .id = 2, .normalized = true}};
  EXPECT_EQ(parts_of(AddedTokens(tokens, false), "<a><b>"), "[<a>]<b>|");
  EXPECT_EQ(parts_of(AddedTokens(tokens, true), "<a><b>"), "<a>|[<b>]");
}

TEST(AddedTokens, MayTakeTheWhiteSpaceInFrontOfThem) {
  const AddedTokens tokens({{.content = "<m>", .id = 1, .lstrip = true}, {.content = "<n>", .id = 2}}, false);
  EXPECT_EQ(parts_of(tokens, "a \t\u3000<m> b"), "a|[<m>] b|");
  EXPECT_EQ(parts_of(tokens, "  <m>"), "[<m>]");
  EXPECT_EQ(parts_of(tokens, "<m> <m>"), "[<m>][<m>]");
  EXPECT_EQ(parts_of(tokens, " a <n>"), " a |[<n>]");
  EXPECT_EQ(parts_of(tokens, " é <m>"), " é|[<m>]");
}

TEST(AddedTokensOfJson, HaveTheirOptions) {
  const auto tokens = added_tokens_of(Json::parse(R"([{"content": "a", "id": 1},
      {"content": "b", "id": 2, "normalized": true}, {"content": "c", "id": 3, "normalized": false, "lstrip": true}])"),
                                      "where");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_FALSE(tokens[0].normalized || tokens[0].lstrip);
  EXPECT_TRUE(tokens[1].normalized && !tokens[1].lstrip);
  EXPECT_TRUE(tokens[2].lstrip && !tokens[2].normalized);
  EXPECT_TRUE(added_tokens_of(Json(), "where").empty());
}

TEST(AddedTokensOfJson, OptionsThatChangeWhatIsAroundThemAreErrors) {
  const auto refusal = [](const std::string& token) {
    return testing::error_of([&] { added_tokens_of(Json::parse("[" + token + "]"), "where"); });
  };
  for (const char* option : {"single_word", "rstrip"}) {
    const std::string message = refusal(R"({"content": "x", "id": 1, ")" + std::string(option) + R"(": true})");
    EXPECT_TRUE(testing::contains(message, std::string("where: expected tokens without \"") + option)) << message;
  }
  EXPECT_TRUE(testing::contains(refusal(R"({"content": "x", "id": 1, "normalized": true, "lstrip": true})"), "lstrip"));
  for (const char* token : {"{}", R"({"content": "x"})", R"({"id": 1})", R"({"content": "x", "id": "1"})", "1"})
    EXPECT_TRUE(testing::contains(refusal(token), "content and id of each token")) << token;
}

}  // namespace
}  // namespace vitrail::text
