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

}  // namespace
}  // namespace vitrail::data
