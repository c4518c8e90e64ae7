// SPDX-License-Identifier: Apache-2.0
// The limits by their names, as the command line sets them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/fields.h"
#include "vitrail/serve/limits.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

std::vector<std::string> values_of(const Limits& limits) {
  std::vector<std::string> values;
  for (const FieldRow& row : rows_of(describe_limits, limits)) values.push_back(row.preset);
  return values;
}

TEST(LimitNames, EachSetsItsOwnLimitAlone) {
  const std::vector<FieldRow> rows = rows_of(describe_limits);
  EXPECT_EQ(rows.size(), 18u);
  const std::string unknown = error_of([] {
    Limits limits;
    set_limit(limits, "body_bytes", "1");
  });
  for (size_t i = 0; i < rows.size(); ++i) {
    Limits limits;
    std::vector<std::string> want = values_of(limits);
    want[i] = "7";
    set_limit(limits, rows[i].option, "7");
    EXPECT_EQ(values_of(limits), want) << rows[i].option;
    for (const char* wrong : {"0", "-1", "", "nan", "1099511627777"}) {
      EXPECT_TRUE(contains(error_of([&] { set_limit(limits, rows[i].option, wrong); }), rows[i].option + ": expected "))
          << wrong;
    }
    EXPECT_EQ(values_of(limits), want) << rows[i].option;
    EXPECT_TRUE(contains(unknown, rows[i].option)) << unknown;
  }
}

TEST(LimitNames, RangesAreThoseOfTheTypes) {
  Limits limits;
  set_limit(limits, "exit-seconds", "0.001");
  set_limit(limits, "exit-seconds", "1e6");
  EXPECT_THROW(set_limit(limits, "exit-seconds", "0.0009"), Error);
  set_limit(limits, "body-bytes", "1099511627776");
  EXPECT_EQ(limits.body_bytes, size_t{1} << 40);
  set_limit(limits, "json-depth", "2147483647");
  EXPECT_THROW(set_limit(limits, "json-depth", "2147483648"), Error);
  set_limit(limits, "header-bytes", "4294967295");
  EXPECT_THROW(set_limit(limits, "header-bytes", "4294967296"), Error);
}

TEST(LimitNames, DefaultsFitIntoLittleMemory) {
  EXPECT_EQ(values_of(limits_within(int64_t{4} << 30)), values_of(Limits{}));
  const Limits limits = limits_within(int64_t{300} << 20);
  EXPECT_EQ(limits.buffered_bytes, size_t{75} << 20);
  EXPECT_EQ(limits.embedding_bytes, (size_t{300} << 20) / 16);
  EXPECT_EQ(limits.pixels, (int64_t{150} << 20) / 6);
}

// "67,108,864"
std::string with_commas(std::string number) {
  for (auto at = std::ssize(number) - 3; at > 0; at -= 3) number.insert(static_cast<size_t>(at), ",");
  return number;
}

TEST(LimitNames, TheDocumentedDefaultsAreTheLimits) {
  std::ifstream file(testing::source("docs/serving.md"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const FieldRow& row : rows_of(describe_limits)) {
    const std::string name = "`" + row.option + "`", preset = '(' + with_commas(row.preset);
    bool documented = false;
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
      documented = documented || text.substr(at, 80).find(preset) != text.npos;
    EXPECT_TRUE(documented) << name << " " << preset << ")";
  }
}

}  // namespace
}  // namespace vitrail::serve
