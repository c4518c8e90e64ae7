// SPDX-License-Identifier: Apache-2.0
// The fields of key maps, and the limits of their values.
#include "vitrail/weights/key_map_json_internal.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace vitrail::weights {
namespace {

ParsedKeyMap parsed(const std::string& json) { return parse_key_map(json, "map.json"); }

std::string map_json_error(const std::string& json) {
  return testing::error_of([&] { parse_key_map(json, "map.json"); });
}

std::string with_rule(const std::string& rule) { return R"({"name": "own", "rules": [)" + rule + "]}"; }

TEST(KeyMapJson, EveryFieldOfAMapIsRead) {
  const ParsedKeyMap map = parsed(R"({"name": "own", "base": "timm", "about": "a library",
      "detect": ["a", ["b", "c"], []], "model_args": {"depth": 3, "norm": "rms"},
      "rules": [{"from": "x", "to": "y"}], "modules": [{"from": "m", "to": "n", "part": [1, 3]}]})");
  EXPECT_EQ(map.name, "own");
  EXPECT_EQ(map.base, "timm");
  EXPECT_EQ(map.about, "a library");
  EXPECT_EQ(map.model_args, R"({"depth":3,"norm":"rms"})");
  EXPECT_EQ(map.detect, (std::vector<std::vector<std::string>>{{"a"}, {"b", "c"}, {}}));
  ASSERT_EQ(map.rules.size(), 1u);
  EXPECT_EQ(map.rules[0].from, "x");
  EXPECT_EQ(map.rules[0].to, "y");
  ASSERT_EQ(map.modules.size(), 1u);
  EXPECT_EQ(map.modules[0].from, "m");
  EXPECT_EQ(map.modules[0].to, "n");
  EXPECT_EQ(map.modules[0].part, 1);
  EXPECT_EQ(map.modules[0].parts, 3);
  EXPECT_EQ(map.modules[0].label, "map.json: module 1 (\"m\")");
  const ParsedKeyMap plain = parsed(R"({"name": "own", "rules": []})");
  EXPECT_TRUE(plain.base.empty() && plain.about.empty() && plain.model_args.empty() && plain.detect.empty() &&
              plain.rules.empty() && plain.modules.empty());
}

TEST(KeyMapJson, OnlyTheKeysOfDetectionCanBeRead) {
  const ParsedKeyMap map =
      parse_key_map(R"({"name": "own", "detect": ["a"], "rules": [{"from": 3}], "modules": [4]})", "map.json", true);
  EXPECT_EQ(map.detect, (std::vector<std::vector<std::string>>{{"a"}}));
  EXPECT_TRUE(map.rules.empty() && map.modules.empty());
}

TEST(KeyMapJson, ARuleHasTheseDefaults) {
  const KeyRule rule = parsed(with_rule(R"({"from": "a", "to": "b", "drop": false})")).rules.at(0);
  EXPECT_FALSE(rule.drop);
  EXPECT_EQ(rule.part, 0);
  EXPECT_EQ(rule.parts, 1);
  EXPECT_EQ(rule.first, 0);
  EXPECT_EQ(rule.last, 1);
  EXPECT_EQ(rule.cuts, 1);
  EXPECT_EQ(rule.skip, 0);
  EXPECT_EQ(rule.rows, 0);
  EXPECT_FALSE(rule.rearrange);
  EXPECT_TRUE(rule.sizes.empty());
  EXPECT_EQ(rule.label, "map.json: rule 1 (\"a\")");
}

TEST(KeyMapJson, EveryFieldOfARuleIsRead) {
  const ParsedKeyMap map = parsed(with_rule(R"({"from": "gone", "drop": true}, {"from": "a", "to": "b", "part": [2, 5],
      "skip": 7, "rows": 9, "rearrange": "(p c) d -> p c d", "sizes": {"p": "patch_size", "c": 4}})"));
  ASSERT_EQ(map.rules.size(), 2u);
  EXPECT_TRUE(map.rules[0].drop);
  EXPECT_EQ(map.rules[0].to, "");
  const KeyRule& rule = map.rules[1];
  EXPECT_EQ(rule.part, 2);
  EXPECT_EQ(rule.parts, 5);
  EXPECT_EQ(rule.skip, 7);
  EXPECT_EQ(rule.rows, 9);
  ASSERT_TRUE(rule.rearrange);
  EXPECT_EQ(rule.rearrange->pattern(), "(p c) d -> p c d");
  EXPECT_EQ(rule.sizes, (AxisSizes{{"p", std::string("patch_size")}, {"c", int64_t{4}}}));
  EXPECT_EQ(rule.label, "map.json: rule 2 (\"a\")");
}

TEST(KeyMapJson, ASplitRuleBecomesOneForEachName) {
  const ParsedKeyMap map = parsed(
      with_rule(R"({"from": "a", "to": ["q", "", "v"], "split": [1, 4, 2], "skip": 3}, {"from": "z", "to": "y"})"));
  ASSERT_EQ(map.rules.size(), 4u);
  const int64_t bounds[] = {0, 1, 5, 7};
  const char* names[] = {"q", "", "v"};
  for (size_t i = 0; i < 3; ++i) {
    const KeyRule& rule = map.rules[i];
    EXPECT_EQ(rule.from, "a");
    EXPECT_EQ(rule.to, names[i]);
    EXPECT_EQ(rule.drop, i == 1) << i;
    EXPECT_EQ(rule.first, bounds[i]);
    EXPECT_EQ(rule.last, bounds[i + 1]);
    EXPECT_EQ(rule.cuts, 7);
    EXPECT_EQ(rule.skip, 3);
    EXPECT_EQ(rule.label, "map.json: rule 1 (\"a\")");
  }
  EXPECT_EQ(map.rules[3].label, "map.json: rule 2 (\"z\")");
}

TEST(KeyMapJson, ValuesMayReachTheirLimits) {
  const std::string long_name(512, 'n');
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": ")" + long_name + "\"}")).rules[0].to, long_name);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": "b", "part": [63, 64]})")).rules[0].part, 63);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": "b", "part": [0, 1]})")).rules[0].parts, 1);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": "b", "skip": 65536})")).rules[0].skip, 65536);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": "b", "rows": 65536})")).rules[0].rows, 65536);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": ["b", "c"], "split": [1, 63]})")).rules[1].cuts, 64);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": ["b", "c"], "split": [1, 1]})")).rules[1].cuts, 2);
  EXPECT_EQ(parsed(with_rule(R"({"from": "a", "to": ["b"], "split": [64]})")).rules[0].cuts, 64);
  EXPECT_EQ(parsed(R"({"name": "own", "rules": [], "model_args": [[[[[[[1]]]]]]]})").model_args, "[[[[[[[1]]]]]]]");
}

TEST(KeyMapJson, TheErrorSaysWhatIsWrongAndInWhichRule) {
  const std::string rule = "map.json: rule 1 (\"a\"): expected ",
                    part = "\"part\" as [i, n] with 0 <= i < n <= 64, got ",
                    split = "\"split\" as one positive number per name in \"to\", of sum 2 to 64, got ",
                    skip = "\"skip\" as a number of rows, at most 65536, got ",
                    size = "a size as a positive integer or the name of a field, got another value for \"p\"";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"from": "a", "to": "b", "part": [64, 65]})", rule + part + "[64,65]"},
      {R"({"from": "a", "to": "b", "part": [0, 65]})", rule + part + "[0,65]"},
      {R"({"from": "a", "to": "b", "part": [-1, 3]})", rule + part + "[-1,3]"},
      {R"({"from": "a", "to": "b", "part": [0, 0]})", rule + part + "[0,0]"},
      {R"({"from": "a", "to": "b", "part": [3, 3]})", rule + part + "[3,3]"},
      {R"({"from": "a", "to": "b", "part": [1]})", rule + part + "[1]"},
      {R"({"from": "a", "to": "b", "part": [0, 1, 2]})", rule + part + "[0,1,2]"},
      {R"({"from": "a", "to": "b", "part": ["0", 2]})", rule + part + "[\"0\",2]"},
      {R"({"from": "a", "to": "b", "part": 1})", rule + part + "1"},
      {R"({"from": "a", "to": "b", "skip": 65537})", rule + skip + "65537"},
      {R"({"from": "a", "to": "b", "skip": 1.5})", rule + skip + "1.5"},
      {R"({"from": "a", "to": "b", "skip": ")" + std::string(100, 'x') + "\"}",
       rule + skip + "\"" + std::string(79, 'x')},
      {R"({"from": "a", "to": "b", "rows": -1})", rule + "\"rows\" as a number of rows, at most 65536, got -1"},
      {R"({"from": "a", "to": ["b", "c"], "split": [1, 64]})", rule + split + "[1,64]"},
      {R"({"from": "a", "to": ["b", "c"], "split": [0, 2]})", rule + split + "[0,2]"},
      {R"({"from": "a", "to": ["b", "c"], "split": [1, -1]})", rule + split + "[1,-1]"},
      {R"({"from": "a", "to": ["b", "c"], "split": [1, 1, 1]})", rule + split + "[1,1,1]"},
      {R"({"from": "a", "to": ["b"], "split": [1]})", rule + split + "[1]"},
      {R"({"from": "a", "to": ["b", "c"], "split": "12"})", rule + split + "\"12\""},
      {R"({"from": "a", "to": ["b", "c"]})", rule + split + "null"},
      {R"({"from": "a", "to": ["b", 3], "split": [1, 1]})", rule + "\"to\" as a string, got number"},
      {R"({"from": "a", "to": "b", "split": [2]})", rule + "\"to\" as a list of names with \"split\", got one name"},
      {R"({"from": "a", "to": 3})", rule + "\"to\" as a string, got number"},
      {R"({"from": "a"})", rule + "\"to\" as a string, got none"},
      {R"({"from": "a", "to": ")" + std::string(513, 'n') + "\"}", rule + "\"to\" of at most 512 characters, got 513"},
      {R"({"from": "a", "to": ["b", ")" + std::string(514, 'n') + "\"], \"split\": [1, 1]}",
       rule + "\"to\" of at most 512 characters, got 514"},
      {R"({"from": "a", "to": "b", "rearrange": "p d -> d p", "sizes": [4]})",
       rule + "\"sizes\" as an object, got array"},
      {R"({"from": "a", "to": "b", "sizes": {"p": 4}})", rule + "\"sizes\" of axes in \"rearrange\", got \"p\""},
      {R"({"from": "a", "to": "b", "rearrange": "d -> d", "sizes": {"p": 4}})",
       rule + "\"sizes\" of axes in \"rearrange\", got \"p\""},
      {R"({"from": "a", "to": "b", "rearrange": "p -> p", "sizes": {"p": 0}})", rule + size},
      {R"({"from": "a", "to": "b", "rearrange": "p -> p", "sizes": {"p": -2}})", rule + size},
      {R"({"from": "a", "to": "b", "rearrange": "p -> p", "sizes": {"p": 1.5}})", rule + size},
      {R"({"from": "a", "to": "b", "rearrange": 5})", rule + "\"rearrange\" as a string, got number"},
      {R"({"from": "a", "to": "b", "drop": 1})", rule + "\"drop\" as true or false, got number"},
      {R"({"from": "a", "to": "b", "drop": true})", rule + "nothing beside \"from\" and \"drop\", got more"},
      {R"({"from": "a", "to": "b", "form": "x"})", rule + "only the keys of a key map, got \"form\""},
      {R"({"to": "b"})", "map.json: rule 1: expected \"from\" as a string, got none"},
      {R"({"from": null, "to": "b"})", "map.json: rule 1: expected \"from\" as a string, got null"},
      {R"("a")", "map.json: rule 1: expected an object, got string"},
      {R"({"from": "x", "to": "y"}, {"from": "a", "to": ["b", "c"], "split": [1, 1]}, {"from": "z"})",
       "map.json: rule 3 (\"z\"): expected \"to\" as a string, got none"},
      {R"({"from": ")" + std::string(100, 'f') + R"(", "to": 1})",
       "map.json: rule 1 (\"" + std::string(80, 'f') + "\"): expected \"to\" as a string, got number"}};
  for (const auto& [text, want] : cases) EXPECT_EQ(map_json_error(with_rule(text)), want);
}

TEST(KeyMapJson, TheErrorSaysWhatIsWrongWithTheMap) {
  const std::string only = "map.json: module 1 (\"m\"): expected only \"from\", \"to\" and \"part\", got more";
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "map.json: expected a JSON object, got array"},
      {"", "map.json: expected a key map in JSON, got nothing"},
      {R"({"rules": []})", "map.json: expected \"name\" as a string, got none"},
      {R"({"name": 3, "rules": []})", "map.json: expected \"name\" as a string, got number"},
      {R"({"name": "own"})", "map.json: expected \"rules\" as an array, got none"},
      {R"({"name": "own", "rules": {}})", "map.json: expected \"rules\" as an array, got none"},
      {R"({"name": "own", "rules": [], "base": 1})", "map.json: expected \"base\" as a string, got number"},
      {R"({"name": "own", "rules": [], "about": []})", "map.json: expected \"about\" as a string, got array"},
      {R"({"name": "own", "rules": [], "rule": 1})", "map.json: expected only the keys of a key map, got \"rule\""},
      {R"({"name": "own", "rules": [], "detect": "a"})",
       "map.json: expected \"detect\" as an array of keys, got string"},
      {R"({"name": "own", "rules": [], "detect": [["a", 1]]})",
       "map.json: expected \"detect\" as an array of keys, got number"},
      {R"({"name": "own", "rules": [], "modules": {}})", "map.json: expected \"modules\" as an array, got object"},
      {R"({"name": "own", "rules": [], "modules": [{"from": "m", "drop": true}]})", only},
      {R"({"name": "own", "rules": [], "modules": [{"from": "m", "to": "n", "rearrange": "a -> a"}]})", only},
      {R"({"name": "own", "rules": [], "modules": [{"from": "m", "to": ["n", "o"], "split": [1, 1]}]})", only},
      {R"({"name": "own", "rules": [], "model_args": [[[[[[[[1]]]]]]]]})",
       "map.json: expected a key map, got JSON that is nested deeper"}};
  for (const auto& [text, want] : cases) EXPECT_EQ(map_json_error(text), want);
  EXPECT_TRUE(
      testing::contains(map_json_error("{\"name\": }"), "map.json: expected a key map in JSON, got line 1, column 10"));
}

}  // namespace
}  // namespace vitrail::weights
