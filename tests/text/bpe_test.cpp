// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/bpe_internal.h"

#include <gtest/gtest.h>

#include "vitrail/base/error.h"

namespace vitrail::text {
namespace {

using Ids = std::vector<int64_t>;

TEST(Bpe, MergesTheLeftmostOfEqualPairs) {
  const Bpe bpe({{"a", 0}, {"aa", 1}}, {{"a", "a"}}, "test");
  EXPECT_EQ(bpe.merge({0, 0, 0}), (Ids{1, 0}));
  EXPECT_EQ(bpe.merge({0, 0, 0, 0, 0}), (Ids{1, 1, 0}));
}

TEST(Bpe, MergesTheLowestRankFirst) {
  const Vocabulary vocabulary{{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}, {"abc", 5}};
  EXPECT_EQ(Bpe(vocabulary, {{"b", "c"}, {"a", "b"}}, "test").merge({0, 1, 2}), (Ids{0, 4}));
  EXPECT_EQ(Bpe(vocabulary, {{"a", "b"}, {"b", "c"}}, "test").merge({0, 1, 2}), (Ids{3, 2}));
  EXPECT_EQ(Bpe(vocabulary, {{"b", "c"}, {"a", "bc"}}, "test").merge({0, 1, 2}), (Ids{5}));
}

// The dictionaries of the reference keep the last one too.
TEST(Bpe, ARepeatedMergeHasItsLastRank) {
  const Vocabulary vocabulary{{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}};
  EXPECT_EQ(Bpe(vocabulary, {{"a", "b"}, {"b", "c"}, {"a", "b"}}, "test").merge({0, 1, 2}), (Ids{0, 4}));
}

TEST(Bpe, RefusesMergesOfUnknownTokensAndIdsOutOfRange) {
  EXPECT_THROW(Bpe({{"a", 0}}, {{"a", "a"}}, "test"), Error);
  EXPECT_THROW(Bpe({{"a", -1}}, {}, "test"), Error);
}

}  // namespace
}  // namespace vitrail::text
