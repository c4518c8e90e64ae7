// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/request_options.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace vitrail::tasks {
namespace {

using testing::contains;
using testing::error_of;

RequestOptions options_of(const Parameters& given) {
  RequestOptions options;
  options.add(given);
  return options;
}

TEST(RequestOptions, AFlagIsTrueWithoutAValue) {
  EXPECT_FALSE(RequestOptions().flag("exif"));
  EXPECT_TRUE(options_of({{"exif", ""}}).flag("exif"));
  EXPECT_FALSE(options_of({{"exif", "0"}}).flag("exif"));
}

TEST(RequestOptions, OnlyListsMayBeRepeated) {
  RequestOptions options = options_of({{"point", "1,2"}, {"top", "3"}, {"point", "4,5"}});
  EXPECT_EQ(options.texts("point"), (std::vector<std::string>{"1,2", "4,5"}));
  EXPECT_EQ(options.text("top"), "3");
  EXPECT_EQ(options.text("none"), std::nullopt);
  EXPECT_EQ(error_of([&] { options.text("point"); }), "point: expected one value, got 2");
}

TEST(RequestOptions, AnOptionThatNobodyTakesIsAnErrorThatNamesSimilarOnes) {
  RequestOptions options = options_of({{"top", "3"}, {"tpo", "4"}});
  options.text("top");
  options.text("labels");
  const std::string similar = error_of([&] { options.require_all_taken(); });
  EXPECT_TRUE(contains(similar, "an option of this route: top, got 'tpo'")) << similar;
  options.text("tpo");
  options.require_all_taken();
  options.add("zzzzzzzz", "");
  const std::string all = error_of([&] { options.require_all_taken(); });
  EXPECT_TRUE(contains(all, "labels, top, tpo, got 'zzzzzzzz'")) << all;
}

}  // namespace
}  // namespace vitrail::tasks
