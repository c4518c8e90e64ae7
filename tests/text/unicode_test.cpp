// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/unicode_internal.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/text/canonical_text_internal.h"

namespace vitrail::text {
namespace {

std::string lower(std::string_view text) { return to_utf8(lower_text(code_points(text))); }

// Python's str.lower().
TEST(LowerText, ASigmaIsFinalAtTheEndOfAWord) {
  const std::pair<const char*, const char*> cases[] = {{"ΣΑΣ", "σας"},
                                                       {"Σ", "σ"},
                                                       {"ΑΣ", "ας"},
                                                       {"ΑΣ ΣΑ", "ας σα"},
                                                       {"ΑΣΑ", "ασα"},
                                                       {"Α.Σ", "α.ς"},
                                                       {"ΑΣ.Α", "ασ.α"},
                                                       {"ΑΣ. Α", "ας. α"},
                                                       {".Σ", ".σ"},
                                                       {"1Σ", "1σ"},
                                                       {"Α\u0301Σ", "α\u0301ς"},
                                                       {"ΑΣ\u0301", "ας\u0301"},
                                                       {"ΑΣ\u0301Α", "ασ\u0301α"},
                                                       {"ΑΣ1", "ας1"},
                                                       {"ǅΣ", "ǆς"}};
  for (const auto& [text, want] : cases) EXPECT_EQ(lower(text), want) << text;
}

TEST(LowerText, OtherCharactersHaveTheirFullLowerCase) {
  EXPECT_EQ(lower("ÄÖẞİ"), "äößi\u0307");
  EXPECT_EQ(to_utf8(lower_each(code_points("ΑΣ İ"))), "ασ i\u0307") << "whatever is around it";
}

TEST(CodePoints, AreThoseOfUtf8) {
  EXPECT_EQ(code_points("a\u00e9\u20ac\U0001F600"), U"a\u00e9\u20ac\U0001F600");
  EXPECT_EQ(to_utf8(U"a\u00e9\u20ac\U0001F600"), "a\u00e9\u20ac\U0001F600");
  EXPECT_TRUE(code_points("").empty());
  for (const char* text : {"a\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80"}) EXPECT_THROW(code_points(text), Error) << text;
}

TEST(WhiteSpace, IsThePropertyOfUnicode) {
  for (const char32_t c : U"\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000") {
    if (c == 0) continue;  // the end of the literal
    EXPECT_TRUE(is_white_space(c)) << static_cast<uint32_t>(c);
  }
  for (const char32_t c : {U'\b', U'\x0e', U'\x1c', U'a', U'\u200b', U'\u1fff', U'\u2060', U'\u3001', U'\ufeff'})
    EXPECT_FALSE(is_white_space(c)) << static_cast<uint32_t>(c);
}

TEST(Categories, LettersAndNumbersOfAnyScript) {
  for (const char32_t c : {U'a', U'Z', U'\u01c5', U'\u02b0', U'猫', U'\u00aa'}) EXPECT_TRUE(is_letter(c));
  for (const char32_t c : {U'1', U'\u0301', U'_', U' ', U'\u2160'}) EXPECT_FALSE(is_letter(c));
  for (const char32_t c : {U'0', U'\u0661', U'\u2160', U'\u00bd'}) EXPECT_TRUE(is_number(c));
  for (const char32_t c : {U'a', U'.', U'猫'}) EXPECT_FALSE(is_number(c));
}

TEST(GraphemeClusters, KeepAccentsWithTheirLetters) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(grapheme_clusters("ae\u0301\u0302b"), (Parts{"a", "e\u0301\u0302", "b"}));
  EXPECT_EQ(grapheme_clusters("\r\nx"), (Parts{"\r\n", "x"}));
  EXPECT_EQ(grapheme_clusters("猫"), (Parts{"猫"}));
  EXPECT_TRUE(grapheme_clusters("").empty());
}

TEST(Nfc, ComposesAndOrdersAccents) {
  EXPECT_EQ(nfc(U"e\u0301"), U"\u00e9");
  EXPECT_EQ(nfc(U"e\u0301\u0323"), U"\u1eb9\u0301");
  EXPECT_EQ(nfc(U"\u212b"), U"\u00c5");
  EXPECT_TRUE(nfc(U"").empty());
}

// Python's str.split() also separates at the four separators U+001C to U+001F.
TEST(SingleSpaces, ReplaceEachRunOfPythonsWhiteSpace) {
  EXPECT_EQ(with_single_spaces(U"a \t\u001c\u001d\u001e\u001f\u3000b"), U"a b");
  for (const char32_t c : {U'\x1c', U'\x1d', U'\x1e', U'\x1f', U'\u0085'}) {
    EXPECT_EQ(with_single_spaces(std::u32string(U"a") + c + U"b"), U"a b") << static_cast<uint32_t>(c);
  }
  EXPECT_EQ(with_single_spaces(U"a\u001bb"), U"a\u001bb");
  EXPECT_EQ(with_single_spaces(U"  a  "), U" a");
  EXPECT_EQ(with_single_spaces(U"  "), U"");
}

TEST(Punctuation, IsPythonsOfAscii) {
  std::u32string all;
  for (char32_t c = 0; c < 256; ++c) all += c;
  const std::u32string left = without_punctuation(all);
  EXPECT_EQ(left.size(), 256u - 32u);
  for (const char32_t c : U"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") {
    if (c == 0) continue;  // the end of the literal
    EXPECT_EQ(left.find(c), left.npos) << static_cast<char>(c);
  }
}

// What Python's str.lower() gives for each of the characters that Unicode calls case-ignorable.
TEST(LowerText, ASigmaBelongsToAWordOverCaseIgnorableCharacters) {
  for (const char32_t c : code_points("'.:\u00b7\u0387\u0375\u055f\u05f4‘’․‧︓﹒﹕＇．：\u0301\u20dd\u00ad\u02b0^´")) {
    const std::string ignored = to_utf8(std::u32string(1, c));
    EXPECT_EQ(lower("Α" + ignored + "Σ"), "α" + ignored + "ς") << ignored;
    EXPECT_EQ(lower("ΑΣ" + ignored + "Α"), "ασ" + ignored + "α") << ignored;
  }
  for (const char* other : {"-", "\"", "1", "\u4e00"}) {
    EXPECT_EQ(lower("Α" + std::string(other) + "Σ"), "α" + std::string(other) + "σ") << other;
    EXPECT_EQ(lower("ΑΣ" + std::string(other) + "Α"), "ας" + std::string(other) + "α") << other;
  }
  EXPECT_EQ(lower("Α''Σ"), "α''ς") << "two of them";
  EXPECT_EQ(lower("ΑΣ''Α"), "ασ''α");
}

TEST(CodePoints, AnErrorNamesTheByte) {
  EXPECT_ERROR(testing::error_of([] { code_points("a\u00e9\xff"); }), "text", "another byte at 3");
}

TEST(WhiteSpace, IsTwentyFiveCharacters) {
  int count = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) count += is_white_space(c) ? 1 : 0;
  EXPECT_EQ(count, 25);
}

TEST(Categories, NeighboursOfLettersAndNumbersAreNeither) {
  for (const char32_t c : {U'\u0378', U'\u0903', U'\u20dd', U'\u203f', U'-', U'\u0301'}) {
    EXPECT_FALSE(is_letter(c)) << static_cast<uint32_t>(c);
    EXPECT_FALSE(is_number(c)) << static_cast<uint32_t>(c);
  }
}

TEST(GraphemeClusters, OfFlagsAndOfJoinedEmoji) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(grapheme_clusters("🇩🇪🇫🇷x"), (Parts{"🇩🇪", "🇫🇷", "x"}));
  EXPECT_EQ(grapheme_clusters("👩\u200d👧a"), (Parts{"👩\u200d👧", "a"}));
  EXPECT_EQ(grapheme_clusters("ab"), (Parts{"a", "b"}));
}

TEST(Nfc, LeavesCompatibilityCharacters) { EXPECT_EQ(nfc(U"\ufb01\u00b2a"), U"\ufb01\u00b2a"); }

TEST(LowerEach, IsOneCharacterButForTheDottedI) {
  EXPECT_EQ(lower_each(U"aZ\u01c5\u1e9e\u0130Z"), U"az\u01c6\u00dfi\u0307z");
}

}  // namespace
}  // namespace vitrail::text
