// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/label_file_internal.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::models {
namespace {

using Names = std::vector<std::string>;

Names names(const std::string& text, size_t classes = 3) { return parse_labels(text, "names", classes); }
std::string label_error(const std::string& text) {
  return testing::error_of([&] { names(text); });
}

TEST(LabelFile, LinesOfAllSystemsAreNames) {
  const Names want{"cat", "dog", "hot dog"};
  for (const char* text :
       {"cat\ndog\nhot dog", "cat\ndog\nhot dog\n", "cat\r\ndog\r\nhot dog\r\n", "cat\rdog\rhot dog\r",
        "\xef\xbb\xbf"
        "cat\ndog\nhot dog\n\n \t\n"}) {
    EXPECT_EQ(names(text), want) << text;
  }
  EXPECT_EQ(names("a"), Names{"a"});
  EXPECT_EQ(names(""), Names{});
  EXPECT_EQ(names("\n\n"), Names{});
  EXPECT_EQ(names(" a \nb\nc"), (Names{" a ", "b", "c"}));
}

// With too few names it is unclear which class has none.
TEST(LabelFile, BlankLinesAreLeftOutUnlessNamesAreMissing) {
  EXPECT_ERROR(label_error("a\n\nb\n"), "names", "2 and blank lines: 2");
  EXPECT_ERROR(label_error("\na\n \n\nb\n"), "names", "2 and blank lines: 1, 3, 4");
  const testing::Warnings warnings;
  EXPECT_EQ(names("a\n\nb\n", 2), (Names{"a", "b"}));
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_EQ(names("a\n\nb\n", 0), (Names{"a", "b"})) << "of any number of classes";
  EXPECT_TRUE(warnings.any("names: 1 blank line left out"));
  EXPECT_EQ(names("\na\n \nb\n", 2), (Names{"a", "b"}));
  EXPECT_EQ(names("a\r\nb\r\n", 5), (Names{"a", "b"})) << "CR LF is one end";
  EXPECT_EQ(names("a\n\rb\n", 2), (Names{"a", "b"}));
  EXPECT_THROW(names("a\n\rb\n", 5), Error);
}

TEST(LabelFile, LinesWithTheirOwnIndicesAreInTheirOrder) {
  for (const char* text : {"2,c\n1,b\n0,a", "0 a\n1 b\n2 c\n", "1: a\n3: c\n2: b", "0\ta\r\n\r\n2\tc\r\n1\tb\r\n"}) {
    const testing::Warnings warnings;
    EXPECT_EQ(names(text), (Names{"a", "b", "c"})) << text;
    ASSERT_EQ(warnings.messages.size(), 1u) << text;
    EXPECT_EQ(warnings.messages[0], "names: uses the number at the beginning of each line as the index of the class");
  }
  EXPECT_EQ(names("1,hot dog\n0,n1,cat", 2), (Names{"n1,cat", "hot dog"}));
}

TEST(LabelFile, OtherNumbersAreNames) {
  for (const Names& want : {Names{"2 euro", "1 euro"},
                            {"0", "1"},
                            {"0 ", "1 "},
                            {"0,a", "0,b"},
                            {"0,a", "2,b"},
                            {"2,a", "3,b"},
                            {"0,a", "b"},
                            {"0a", "1b"},
                            {"0.5 l", "1 l"},
                            {"-1 a", "0 b"},
                            {"0 a"}}) {
    const testing::Warnings warnings;
    std::string text;
    for (const std::string& name : want) text += name + "\n";
    EXPECT_EQ(names(text, want.size()), want) << text;
    EXPECT_TRUE(warnings.messages.empty()) << text;
  }
}

TEST(LabelFile, JsonIsAListOrAMapInEitherDirection) {
  const Names want{"a", "b", "c"};
  for (const char* text : {R"(["a", "b", "c"])", R"({"0": "a", "2": "c", "1": "b"})", R"({"c": 2, "a": 0, "b": 1})",
                           R"({"0": ["n1", "a"], "1": ["n2", "b"], "2": ["n3", "c"]})",
                           R"({"num_labels": 3, "id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"x": 0}})",
                           R"({"label_names": ["a", "b", "c"]})", R"({"label2id": {"a": 0, "b": 1, "c": 2}})",
                           "\xef\xbb\xbf \r\n\t[\"a\", \"b\", \"c\"]"}) {
    EXPECT_EQ(names(text), want) << text;
  }
}

TEST(LabelFile, EachClassOfAMapIsNamedOnce) {
  for (const char* text : {R"({"0": "a", "2": "b"})", R"({"0": "a", "00": "b"})", R"({"a": 0, "b": 0})",
                           R"({"a": 1, "b": 2})", R"({"0": "a", "1": 1})", R"({"0": ["n1"]})", R"({"x": "a"})",
                           R"({"-1": "a"})", R"({"1.0": "a"})", R"({"000000000": "a"})"}) {
    EXPECT_TRUE(testing::contains(label_error(text), "names: expected each class from 0 to ")) << text;
  }
  EXPECT_TRUE(testing::contains(label_error(R"({"id2label": {"5": "a"}})"), "names: id2label: expected each class"));
  EXPECT_TRUE(
      testing::contains(label_error(R"({"id2label": {"0": 1, "1": 0}})"), "names: id2label: expected each class"))
      << "the keys are the indices";
  EXPECT_EQ(names(R"({"id2label": {"a": 1, "b": 0}})"), (Names{"b", "a"}));
  EXPECT_EQ(names(R"({"label2id": {"2": 0, "0": 1, "1": 2}})"), (Names{"2", "0", "1"}));
  EXPECT_TRUE(testing::contains(label_error("[1, 2]"), "a list of names"));
  EXPECT_TRUE(testing::contains(label_error("{"), "names"));
}

TEST(LabelFile, ANameMayBeginWithABracket) {
  EXPECT_EQ(names("[cat]\ndog\nbird"), (Names{"[cat]", "dog", "bird"}));
  EXPECT_THROW(names("[cat]"), Error);  // one line: JSON
  EXPECT_THROW(names("{cat}\ndog"), Error);
}

TEST(LabelFile, Utf16IsAnError) {
  for (const std::string& mark : {std::string("\xff\xfe"), std::string("\xfe\xff")}) {
    EXPECT_TRUE(testing::contains(label_error(mark + "cat"), "got UTF-16 (save it as UTF-8)"));
  }
}

}  // namespace
}  // namespace vitrail::models
