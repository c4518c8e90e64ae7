// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/csv_internal.h"

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

}  // namespace
}  // namespace vitrail::data
