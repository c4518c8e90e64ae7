// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/csv_internal.h"

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

using Fields = std::vector<std::string>;

TEST(Csv, QuotesLineEndsAndSpacesFollowRfc4180) {
  CsvReader reader("x",
                   "\xEF\xBB\xBF"
                   "a, b ,\"c,\"\"d\"\"\"\r\n\n\"two\nlines\",,\nlast");
  EXPECT_EQ(reader.next()->fields, (Fields{"a", "b", "c,\"d\""}));
  const auto second = reader.next();
  EXPECT_EQ(second->fields, (Fields{"two\nlines", "", ""}));
  EXPECT_EQ(second->line, 3u);
  const auto third = reader.next();
  EXPECT_EQ(third->fields, Fields{"last"});
  EXPECT_EQ(third->line, 5u);
  EXPECT_FALSE(reader.next());
}

// Text between a closing quote and the separator belongs to the field, without the spaces around it.
TEST(Csv, TextAfterAClosingQuoteEndsWithTheField) {
  for (const auto& [text, fields] : {std::pair{"\"a.png\" ,3\nb", Fields{"a.png", "3"}},
                                     {"\"a.png\"\t,\"3\" \nb", Fields{"a.png", "3"}},
                                     {"\"a\".png,3\nb", Fields{"a.png", "3"}},
                                     {"x,\"a\"  \r\nb", Fields{"x", "a"}},
                                     {"\"\" ,\nb", Fields{"", ""}}}) {
    CsvReader reader("x", text);
    EXPECT_EQ(reader.next()->fields, fields) << text;
    EXPECT_EQ(reader.next()->fields, Fields{"b"}) << text;
  }
}

TEST(Csv, LinesOfBlanksAreSkipped) {
  CsvReader reader("x", "  \na,b\n \t \r\n   \nc,d\n ");
  EXPECT_EQ(reader.next()->fields, (Fields{"a", "b"}));
  const auto second = reader.next();
  EXPECT_EQ(second->fields, (Fields{"c", "d"}));
  EXPECT_EQ(second->line, 5u);
  EXPECT_FALSE(reader.next());
}

TEST(Csv, AnUnclosedQuoteIsAnErrorWithItsLine) {
  CsvReader reader("x.csv", "a\nb,\"c\n\nd");
  reader.next();
  EXPECT_TRUE(contains(error_of([&] { reader.next(); }), "x.csv:2"));
}

TEST(Csv, SeparatorsAndLineEndsAreRecognised) {
  for (const std::string separator : {",", ";", "\t"}) {
    for (const std::string end : {"\n", "\r\n", "\r"}) {
      const std::string text = "a" + separator + "b" + end + end + "\"x,;\ty\"" + separator + " z " + end;
      CsvReader reader("x", text);
      EXPECT_EQ(reader.next()->fields, (Fields{"a", "b"}));
      const auto second = reader.next();
      EXPECT_EQ(second->fields, (Fields{"x,;\ty", "z"}));
      EXPECT_EQ(second->line, 3u);
      EXPECT_FALSE(reader.next());
    }
  }
  CsvReader commas("x", "a;b.png,1\nc;d,2");
  EXPECT_EQ(commas.next()->fields, (Fields{"a;b.png", "1"}));
}

TEST(Csv, AFirstLineMayNameTheSeparator) {
  for (const std::string text : {"sep=;\na,1;b\n", "sep=;\r\na,1;b", "sep=|\ra,1|b", "\xEF\xBB\xBFsep=\t\na,1\tb\n"}) {
    CsvReader reader("x.csv", text);
    const auto row = reader.next();
    ASSERT_TRUE(row) << text;
    EXPECT_EQ(row->fields, (std::vector<std::string>{"a,1", "b"})) << text;
    EXPECT_EQ(row->line, 2u);
  }
  CsvReader reader("x.csv", "sep=x.png,3\n");
  EXPECT_EQ(reader.next()->fields, (std::vector<std::string>{"sep=x.png", "3"}));
  CsvReader whole("x.csv", "sep=;");  // without the end of a line it is a row
  EXPECT_EQ(whole.next()->fields, (std::vector<std::string>{"sep=", ""}));
}

TEST(Csv, Utf16BecomesUtf8) {
  using namespace std::string_literals;
  EXPECT_EQ(utf8_text("\xFF\xFE"
                      "a\0\xE9\0\xAC\x20\x3D\xD8\x00\xDE"s,
                      "x"),
            "a\u00e9\u20ac\U0001F600");
  EXPECT_EQ(utf8_text("\xFE\xFF"
                      "\0a\0\xE9\x20\xAC\xD8\x3D\xDE\x00"s,
                      "x"),
            "a\u00e9\u20ac\U0001F600");
  EXPECT_EQ(utf8_text("a\xE9", "x"), "a\xE9");
  EXPECT_TRUE(contains(error_of([] {
                         utf8_text(
                             "\xFF\xFE"
                             "a",
                             "x.csv");
                       }),
                       "x.csv: expected complete UTF-16"));
}

// The first and the last character of each number of bytes, and those beside the surrogates.
TEST(Csv, Utf16OfAnyCharacterBecomesItsBytes) {
  for (const auto& [code, bytes] : {std::pair<uint32_t, std::string>{0x1, "\x01"},
                                    {0x7F, "\x7F"},
                                    {0x80, "\xC2\x80"},
                                    {0x7FF, "\xDF\xBF"},
                                    {0x800, "\xE0\xA0\x80"},
                                    {0xD7FF, "\xED\x9F\xBF"},
                                    {0xE000, "\xEE\x80\x80"},
                                    {0xFFFF, "\xEF\xBF\xBF"},
                                    {0x10000, "\xF0\x90\x80\x80"},
                                    {0x10FFFF, "\xF4\x8F\xBF\xBF"}}) {
    std::vector<uint32_t> units{0xFEFF, code};
    if (code >= 0x10000) units = {0xFEFF, 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + (code & 0x3FF)};
    std::string little, big;
    for (const uint32_t unit : units) {
      const char high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xFF);
      little += {low, high};
      big += {high, low};
    }
    EXPECT_EQ(utf8_text(little, "x"), bytes) << code;
    EXPECT_EQ(utf8_text(big, "x"), bytes) << code;
    if (units.size() < 3) continue;
    const std::string half = little.substr(0, 4);
    EXPECT_TRUE(contains(error_of([&] { utf8_text(half, "x.csv"); }), "inside a character")) << code;
  }
}

// It would swallow the next character.
TEST(Csv, HalfASurrogatePairIsAnError) {
  for (const char16_t half : {u'\xD800', u'\xDBFF', u'\xDC00', u'\xDFFF'}) {
    for (const char16_t next : {u't', u'\xD7FF', u'\xD800', u'\xE000'}) {
      std::string little;
      for (const char16_t unit : {u'\xFEFF', u'a', u'\n', half, next})
        little += {static_cast<char>(unit & 0xFF), static_cast<char>(unit >> 8)};
      EXPECT_EQ(error_of([&] { utf8_text(little, "x.csv"); }),
                "x.csv:2: expected complete UTF-16, got half a surrogate pair");
    }
  }
}

}  // namespace
}  // namespace vitrail::data
