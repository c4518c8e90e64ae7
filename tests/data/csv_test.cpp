// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/csv_internal.h"

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

using Schema = std::vector<std::string>;

TEST(Csv, QuotesLineEndsAndSpacesFollowTheRules) {
  CsvReader reader("x",
                   "\xEF\xBB\xBF"
                   "a, b ,\"c,\"\"d\"\"\"\r\n\n\"two\nlines\",,\nlast");
  EXPECT_EQ(reader.next()->fields, (Schema{"a", "b", "c,\"d\""}));
  const auto second = reader.next();
  EXPECT_EQ(second->fields, (Schema{"two\nlines", "", ""}));
  EXPECT_EQ(second->line, 3u);
  const auto third = reader.next();
  EXPECT_EQ(third->fields, Schema{"last"});
  EXPECT_EQ(third->line, 5u);
  EXPECT_FALSE(reader.next());
}

TEST(Csv, AQuoteThatDoesNotEndIsAnErrorWithItsLine) {
  CsvReader reader("x.csv", "a\nb,\"c\n\nd");
  reader.next();
  EXPECT_TRUE(contains(error_of([&] { reader.next(); }), "x.csv:2"));
}

}  // namespace
}  // namespace vitrail::data
