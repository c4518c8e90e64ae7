// SPDX-License-Identifier: Apache-2.0
// The limits by their names, as the command line sets them.
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "vitrail/serve/limits.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

// All fields in the order of the names below.
std::vector<double> fields_of(const Limits& l) {
  const auto d = [](auto value) { return static_cast<double>(value); };
  return {d(l.header_bytes),    d(l.headers),
          d(l.body_bytes),      d(l.chunks),
          d(l.json_depth),      d(l.images),
          d(l.outputs),         d(l.pixels),
          d(l.connections),     d(l.requests),
          d(l.buffered_bytes),  l.header_seconds,
          l.body_grace_seconds, l.body_bytes_per_second,
          l.idle_seconds,       l.request_seconds,
          l.exit_seconds,       d(l.embedding_bytes)};
}
const std::vector<std::string> kNames{"header-bytes",
                                      "headers",
                                      "body-bytes",
                                      "chunks",
                                      "json-depth",
                                      "images",
                                      "outputs",
                                      "pixels",
                                      "connections",
                                      "requests",
                                      "buffered-bytes",
                                      "header-seconds",
                                      "body-grace-seconds",
                                      "body-bytes-per-second",
                                      "idle-seconds",
                                      "request-seconds",
                                      "exit-seconds",
                                      "embedding-bytes"};

TEST(LimitNames, EachSetsItsOwnLimitAlone) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    Limits limits;
    std::vector<double> want = fields_of(limits);
    want[i] = 7;
    set_limit(limits, kNames[i], "7");
    EXPECT_EQ(fields_of(limits), want) << kNames[i];
  }
}

TEST(LimitNames, CountsArePositiveIntegersAndSecondsPositiveNumbers) {
  Limits limits;
  set_limit(limits, "exit-seconds", "0.5");
  EXPECT_EQ(limits.exit_seconds, 0.5);
  set_limit(limits, "exit-seconds", "0.001");
  set_limit(limits, "exit-seconds", "1e6");
  set_limit(limits, "body-bytes", "1099511627776");
  EXPECT_EQ(limits.body_bytes, size_t{1} << 40);
  set_limit(limits, "json-depth", "2147483647");
  set_limit(limits, "header-bytes", "4294967295");
  const Limits before = limits;
  for (const auto& wrong : std::vector<std::pair<const char*, const char*>>{{"body-bytes", "0"},
                                                                            {"body-bytes", "-1"},
                                                                            {"body-bytes", "1.5"},
                                                                            {"body-bytes", "1099511627777"},
                                                                            {"json-depth", "2147483648"},
                                                                            {"header-bytes", "4294967296"},
                                                                            {"exit-seconds", "0"},
                                                                            {"exit-seconds", "0.0009"},
                                                                            {"exit-seconds", "-1"},
                                                                            {"exit-seconds", "1000001"},
                                                                            {"exit-seconds", "nan"},
                                                                            {"exit-seconds", ""},
                                                                            {"images", ""}}) {
    EXPECT_TRUE(
        contains(error_of([&] { set_limit(limits, wrong.first, wrong.second); }), str(wrong.first, ": expected ")))
        << wrong.second;
  }
  EXPECT_EQ(fields_of(limits), fields_of(before));
  const std::string unknown = error_of([&] { set_limit(limits, "body_bytes", "1"); });
  for (const std::string& name : kNames) EXPECT_TRUE(contains(unknown, name)) << unknown;
}

}  // namespace
}  // namespace vitrail::serve
