// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vitrail/base/utf8_internal.h"

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

// The table of section 3, with `length` bytes whether or not that is the shortest form.
std::string encoded(uint32_t character, size_t length) {
  if (length == 1) return {static_cast<char>(character)};
  std::string text;
  for (size_t i = 1; i < length; ++i, character >>= 6) text.insert(0, 1, static_cast<char>(0x80 | (character & 0x3F)));
  const uint32_t mark = length == 2 ? 0xC0 : length == 3 ? 0xE0 : 0xF0;
  return static_cast<char>(mark | character) + text;
}

TEST(Utf8, CharactersHaveTheirShortestForm) {
  for (const auto& [code, length] :
       {std::pair(0u, 1u), std::pair(0x7Fu, 1u), std::pair(0x80u, 2u), std::pair(0x7FFu, 2u), std::pair(0x800u, 3u),
        std::pair(0xFFFFu, 3u), std::pair(0x10000u, 4u), std::pair(0x10FFFFu, 4u)}) {
    std::string text = "a";
    append_utf8(code, text);
    EXPECT_EQ(text, "a" + encoded(code, length)) << code;
  }
}

TEST(Utf8, HasOneFormOfEachCharacterAndNoneOfSurrogates) {
  const uint32_t bits[] = {0, 7, 11, 16, 21};  // that a form of so many bytes holds
  const auto step = [](uint32_t character) {   // every one of two and three bytes, and at the end
    return character < 0x11000 || (character > 0x10FF00 && character < 0x110100) ? 1u : 97u;
  };
  for (uint32_t character = 0; character < 1u << 21; character += step(character)) {
    const size_t shortest = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    const bool exists = character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF);
    for (size_t length = 1; length <= 4; ++length) {
      if (character >> bits[length] != 0) continue;
      const std::string text = encoded(character, length);
      const size_t want = exists && length == shortest ? length : 0;
      ASSERT_EQ(utf8_length(text), want) << character << " in " << length << " bytes";
      ASSERT_EQ(utf8_length(text + "x"), want) << character;
    }
  }
}

TEST(Utf8, ACharacterThatIsCutIsNone) {
  for (const std::string text : {"ä", "€", "😀"}) {
    for (size_t length = 1; length < text.size(); ++length) {
      EXPECT_EQ(utf8_length(text.substr(0, length)), 0u);
      EXPECT_EQ(utf8_length(text.substr(0, length) + "aaa"), 0u);
    }
  }
  EXPECT_EQ(utf8_length(""), 0u);
}

TEST(EscapeUnprintable, EscapesControlCharactersAndOtherBytes) {
  EXPECT_EQ(escape_unprintable("plain ä€😀~"), "plain ä€😀~");
  EXPECT_EQ(escape_unprintable("\x1b[2J\n\t\x1f"), "\\x1b[2J\\x0a\\x09\\x1f");
  EXPECT_EQ(escape_unprintable(std::string("\0a", 2)), "\\x00a");
  EXPECT_EQ(escape_unprintable("\x7f"), "\\x7f") << "DEL";
  EXPECT_EQ(escape_unprintable("\xC2\x80\xC2\x9F"), "\\xc2\\x80\\xc2\\x9f") << "the ends of C1";
  EXPECT_EQ(escape_unprintable("\xC2\xA0\xC3\x80"), "\xC2\xA0\xC3\x80") << "beside C1";
  EXPECT_EQ(escape_unprintable("a\u202eb\u2066\u200f\u061c"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c")
      << "bidirectional controls";
  EXPECT_EQ(escape_unprintable("\u200d\u2010\u2030\u206a"), "\u200d\u2010\u2030\u206a") << "beside them";
  EXPECT_EQ(escape_unprintable("a\xE4z\xE2\x82"), "a\\xe4z\\xe2\\x82");
  EXPECT_EQ(escape_unprintable(""), "");
}

// A name with a newline must not look like the end of a message.
TEST(EscapeMessage, KeepsTheNewlinesOfIndentedLines) {
  EXPECT_EQ(escape_message("two differences\n  first\n  second"), "two differences\n  first\n  second");
  EXPECT_EQ(escape_message("a\nb\n c\n  d\x1b\n"), "a\\x0ab\\x0a c\n  d\\x1b\\x0a");
  EXPECT_EQ(escape_message("\n  \n  "), "\n  \n  ");
  EXPECT_EQ(escape_message("a\xFF\n  \xFE"), "a\\xff\n  \\xfe");
  std::string many = "unknown keys";
  for (int i = 0; i < 200'000; ++i) many += "\n  key";
  EXPECT_EQ(escape_message(many), many) << "as many lines as a checkpoint has keys";
}

}  // namespace
}  // namespace vitrail
