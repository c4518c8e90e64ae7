// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/utf8_internal.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Utf8, IsWhatRfc3629Says) {
  for (const std::string text : {"", "a", "ä", "€", "😀", "\xEF\xBB\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text));
  for (const std::string text : {"\x80", "\xC3", "\xC0\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                 "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "a\xFF"})
    EXPECT_FALSE(is_utf8(text));
  EXPECT_EQ(escape_non_utf8("aä\xE4z"), "aä\\xE4z");
}

}  // namespace
}  // namespace vitrail
