// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {

using Names = std::vector<std::string>;

// The definition of Levenshtein's distance.
size_t slow_distance(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string rest_a = a.substr(1), rest_b = b.substr(1);
  if (a[0] == b[0]) return slow_distance(rest_a, rest_b);
  return 1 + std::min({slow_distance(rest_a, b), slow_distance(a, rest_b), slow_distance(rest_a, rest_b)});
}

TEST(EditDistance, IsThatOfItsDefinition) {
  RandomStream random(1);
  const auto word = [&] {
    std::string text(random.bits() % 6, ' ');
    for (char& c : text) c = static_cast<char>('a' + random.bits() % 3);
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    const std::string a = word(), b = word();
    ASSERT_EQ(edit_distance(a, b), slow_distance(a, b)) << a << " " << b;
  }
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearNames, AreAtMostThreeTheNearestFirst) {
  EXPECT_EQ(near_names("depth", {"width", "dept", "depth2x", "deptt", "deeptt"}), (Names{"dept", "deptt", "deeptt"}));
  EXPECT_EQ(near_names("vit_base", {"vit_tiny", "vit_base_patch16", "vit_bass"}), Names{"vit_bass"});
  EXPECT_EQ(near_names("depth", {}), Names{});
}

TEST(NearNames, DifferInTwoCharactersOrAFifthOfThem) {
  EXPECT_EQ(near_names("abcdefgh", {"abcdefXY"}), Names{"abcdefXY"});
  EXPECT_EQ(near_names("abcdefgh", {"abcdeXYZ"}), Names{});
  EXPECT_EQ(near_names("abcdefghijklmno", {"abcdefghijklXYZ"}), Names{"abcdefghijklXYZ"}) << "three of fifteen";
  EXPECT_EQ(near_names("abcdefghijklmn", {"abcdefghijkXYZ"}), Names{}) << "three of fourteen";
}

TEST(NearNames, DoNotDependOnCase) {
  EXPECT_EQ(near_names("GELU", {"gelu", "Relu"}), (Names{"gelu", "Relu"}));
  EXPECT_EQ(lower_case("AZ az [@`{ 09 \xC4"), "az az [@`{ 09 \xC4") << "only letters of ASCII";
}

// Every short name would be near to every other one.
TEST(NearNames, HaveACharacterInCommon) {
  EXPECT_EQ(near_names("x", {"y", "ab", "xy"}), Names{"xy"});
  EXPECT_EQ(near_names("", {"a", "ab"}), Names{});
}

TEST(NearNames, OfTextThatIsNoNameAreNone) {
  const std::string longest(200, 'a');
  EXPECT_EQ(near_names(longest, {longest}), Names{longest});
  EXPECT_EQ(near_names(longest + "a", {longest + "a"}), Names{});
}

TEST(DidYouMean, EndsTheMessageWithTheNearestName) {
  EXPECT_EQ(did_you_mean("detph", {"depth", "death"}), "; did you mean death?") << "both are as near";
  EXPECT_EQ(did_you_mean("dept", {"depths", "depth"}), "; did you mean depth?");
  EXPECT_EQ(did_you_mean("heads", {"depth"}), "");
}

TEST(SharedWords, CountsEachWordOnce) {
  EXPECT_EQ(shared_words("vit_base_patch16_224", "patch16_vit"), 2u);
  EXPECT_EQ(shared_words("a_a_b", "a_c_a"), 1u);
  EXPECT_EQ(shared_words("vitb", "vit"), 0u);
  EXPECT_EQ(shared_words("", "a"), 0u);
}

TEST(NearNames, AreSortedByDistanceAndThenByName) {
  EXPECT_EQ(near_names("abc", {"abcde", "abd", "abb", "abc", "zbc"}), (Names{"abc", "abb", "abd"}));
  EXPECT_EQ(near_names("abc", {"zbc", "abcde"}), (Names{"zbc", "abcde"}));
}

TEST(SharedWords, AreSeparatedByUnderscores) {
  EXPECT_EQ(shared_words("a_b_c", "c_d_b_e"), 2u);
  EXPECT_EQ(shared_words("a.b", "a_b"), 0u);
  EXPECT_EQ(shared_words("a", "a_x_y"), 1u);
}

}  // namespace
}  // namespace vitrail
