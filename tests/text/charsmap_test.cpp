// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/charsmap_internal.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "tests/support/messages.h"

namespace vitrail::text {
namespace {

// The bytes of a map, with a double-array trie (Darts-clone) in which each state has 256 units of its own.
std::string charsmap_of(const std::map<std::string, std::string>& map) {
  std::vector<uint32_t> units(512);
  units[0] = 256 << 10;  // from the root to the units of the state of the empty text
  std::map<std::string, uint32_t> states{{"", 256}};
  std::string replacements;
  for (const auto& [text, replacement] : map) {
    for (size_t i = 0; i < text.size(); ++i) {
      const std::string beginning = text.substr(0, i + 1);
      if (states.contains(beginning)) continue;
      const auto base = static_cast<uint32_t>(units.size());
      units.resize(units.size() + 256);
      const auto byte = static_cast<uint8_t>(text[i]);
      const uint32_t unit = states.at(text.substr(0, i)) + byte;
      units[unit] = (unit ^ base) << 10 | byte;
      states[beginning] = base;
      if (beginning != text) continue;
      units[unit] |= 1 << 8;  // has a leaf
      units[base] = 0x80000000U | static_cast<uint32_t>(replacements.size());
    }
    replacements += replacement + '\0';
  }
  const auto size = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string bytes(sizeof size + size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(bytes.data() + sizeof size, units.data(), size);
  return bytes + replacements;
}

TEST(Charsmap, ReplacesCharactersAndLeavesOthers) {
  const Charsmap map(charsmap_of({{"A", "a"}, {"ﬁ", "fi"}, {"\n", " "}, {"x", ""}}), "test");
  EXPECT_EQ(map.normalize("AbAﬁ\nxZ猫"), "abafi Z猫");
  EXPECT_EQ(map.normalize(""), "");
  EXPECT_EQ(map.normalize("\xc3\xa9"), "\xc3\xa9");
}

// e with an accent of three bytes has four; é with it has five, é with two accents of two bytes six.
TEST(Charsmap, AClusterOfAtMostFiveBytesIsReplacedAsAWhole) {
  const std::string four = "e\u20d7", five = "\u00e9\u20d7", six = "\u00e9\u0301\u0302";
  const Charsmap map(charsmap_of({{four, "4"}, {five, "5"}, {six, "6"}, {"e", "E"}}), "test");
  EXPECT_EQ(Charsmap(charsmap_of({{five, "5"}}), "test").normalize("a" + five + "b"), "a5b");
  EXPECT_EQ(Charsmap(charsmap_of({{six, "6"}}), "test").normalize(six), six) << "its characters have no replacement";
  EXPECT_EQ(Charsmap(charsmap_of({{"\u00e9", "e"}, {"\u0302", "^"}}), "test").normalize(six), "e\u0301^");
  EXPECT_EQ(map.normalize(five), "5");
}

// The shortest prefix with a replacement stands for all of its cluster.
TEST(Charsmap, TheShortestBeginningOfAClusterIsTaken) {
  const Charsmap map(charsmap_of({{"e", "E"}, {"e\u0301", "é"}}), "test");
  EXPECT_EQ(map.normalize("e\u0301"), "E");
}

TEST(Charsmap, MalformedBytesAreErrors) {
  const std::string good = charsmap_of({{"a", "b"}});
  const auto refusal = [](const std::string& bytes) { return testing::error_of([&] { Charsmap(bytes, "where"); }); };
  std::string odd = good, large = good;
  odd[0] = 3;
  large[3] = 1;
  for (const std::string& bytes :
       {std::string(), std::string("abc"), std::string(4, '\0'), odd, large, good.substr(0, good.size() - 3)}) {
    EXPECT_TRUE(testing::contains(refusal(bytes), "where: expected the size of a trie and its units")) << bytes.size();
  }
  EXPECT_TRUE(testing::contains(refusal(good + "\xff"), "replacements in UTF-8"));
}

TEST(Charsmap, ReplacementsHaveALimit) {
  const std::string longest(256, 'x');
  EXPECT_EQ(Charsmap(charsmap_of({{"a", "b"}, {"c", longest}}), "test").normalize("ca"), longest + "b");
  const std::string message = testing::error_of([&] {
    Charsmap(charsmap_of({{"a", "b"}, {"c", longest + "x"}, {"d", "e"}}), "test");
  });
  EXPECT_TRUE(testing::contains(message, "replacements of at most 256 bytes, got 257")) << message;
}

// Darts-clone's units have large offsets without their last eight bits.
TEST(Charsmap, AnOffsetMayBeInUnitsOf256) {
  std::string bytes = charsmap_of({{"a", "b"}});
  const uint32_t extended = 1U << 10 | 1U << 9;
  std::memcpy(bytes.data() + 4, &extended, 4);  // the root's, which was 256 itself
  EXPECT_EQ(Charsmap(bytes, "test").normalize("ca"), "cb");
}

// A value or an offset beyond the end replaces nothing.
TEST(Charsmap, AnUnitThatLeadsOutOfTheTrieIsNoReplacement) {
  std::string bytes = charsmap_of({{"a", "b"}});
  const auto set = [&](size_t unit, uint32_t value) { std::memcpy(bytes.data() + 4 + 4 * unit, &value, 4); };
  set(512, 0x80000000U | 1000);  // the value of "a"
  EXPECT_EQ(Charsmap(bytes, "test").normalize("a"), "a");
  set(256 + 'a', 1U << 30 | 1 << 8 | 'a');
  EXPECT_EQ(Charsmap(bytes, "test").normalize("a"), "a");
  set(0, 1U << 30);
  EXPECT_EQ(Charsmap(bytes, "test").normalize("a"), "a");
}

// A trie that reaches to the last byte has no replacements.
TEST(Charsmap, MayEndWithItsTrie) {
  const std::string all = charsmap_of({{"a", "b"}});
  EXPECT_EQ(Charsmap(all.substr(0, all.size() - 2), "test").normalize("bc"), "bc");
}

TEST(Charsmap, AReplacementMayBeWithoutItsZeroByte) {
  const std::string all = charsmap_of({{"a", "bcd"}});
  EXPECT_EQ(Charsmap(all.substr(0, all.size() - 1), "test").normalize("xa"), "xbcd");
}

// A zero byte has the label of a leaf and is no character of the trie.
TEST(Charsmap, AZeroByteOfTheTextIsNotReplaced) {
  std::string bytes = charsmap_of({{"a", "b"}});
  const uint32_t leads_to_the_value = (256U ^ 512U) << 10 | 1U << 8;
  std::memcpy(bytes.data() + 4 + 4 * 256, &leads_to_the_value, 4);
  const std::string zero(1, '\0');
  EXPECT_EQ(Charsmap(bytes, "test").normalize(zero + "a"), zero + "b");
}

TEST(Charsmap, EachCharacterHasItsOwnReplacement) {
  const Charsmap map(charsmap_of({{"a", "1"}, {"b", "22"}, {"c", ""}, {"dd", "4"}}), "test");
  EXPECT_EQ(map.normalize("abcabd"), "122122d");
  EXPECT_EQ(map.normalize("dd"), "dd") << "two clusters, whose beginning alone is no sequence";
}

}  // namespace
}  // namespace vitrail::text
