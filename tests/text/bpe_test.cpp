// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/bpe_internal.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
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

TEST(Bpe, RefusalsNameTheTokenAndWhereItStands) {
  const auto refusal = [](const Vocabulary& vocabulary, const Merges& merges) {
    return testing::error_of([&] { Bpe(vocabulary, merges, "where"); });
  };
  const Vocabulary known{{"a", 0}, {"b", 1}, {"ab", 2}, {"xb", 3}, {"ay", 4}, {"", 5}};
  const std::string of_merges = "where: expected merges of tokens in the vocabulary, got ";
  EXPECT_EQ(refusal(known, {{"a", "b"}, {"x", "b"}}), of_merges + "\"x\"");
  EXPECT_EQ(refusal(known, {{"a", "y"}}), of_merges + "\"y\"");
  EXPECT_EQ(refusal(known, {{"b", "a"}}), of_merges + "\"ba\"");
  EXPECT_EQ(refusal(known, {{std::string(81, 'z'), ""}}), of_merges + "\"" + std::string(80, 'z') + "\"");
  EXPECT_ERROR(refusal({{"c", -1}}, {}), "where", "-1 for \"c\"");
  EXPECT_ERROR(refusal({{"c", 2147483648}}, {}), "where", "2147483648 for \"c\"");
}

TEST(Bpe, TheSizeIsOneMoreThanTheLargestId) {
  EXPECT_EQ(Bpe({}, {}, "test").size(), 0);
  EXPECT_EQ(Bpe({{"a", 0}}, {}, "test").size(), 1);
  EXPECT_EQ(Bpe({{"a", 7}, {"b", 3}}, {}, "test").size(), 8);
  EXPECT_EQ(Bpe({{"a", 2147483647}}, {}, "test").size(), 2147483648);
}

TEST(Bpe, TheIdOfATokenIsThatOfTheVocabulary) {
  const Bpe bpe({{"a", 4}, {"b", 0}}, {}, "test");
  EXPECT_EQ(bpe.id_of("a"), 4);
  EXPECT_EQ(bpe.id_of("b"), 0);
  EXPECT_EQ(bpe.id_of("c"), std::nullopt);
}

TEST(Bpe, AMergeIsOfItsOrderedPairAlone) {
  const Bpe bpe({{"a", 1}, {"b", 0}, {"c", 65536}, {"ab", 2}}, {{"a", "b"}}, "test");
  EXPECT_EQ(bpe.merge({1, 0}), Ids{2});
  EXPECT_EQ(bpe.merge({0, 1}), (Ids{0, 1}));
  EXPECT_EQ(bpe.merge({0, 65536}), (Ids{0, 65536})) << "another pair whose ids have the same bits in a row";
  EXPECT_EQ(bpe.merge({1}), Ids{1});
  EXPECT_TRUE(bpe.merge({}).empty());
}

// Merges as section 3.2 of Sennrich et al. describes them: the pair of the lowest rank, the leftmost first, until there
// is none.
Ids merged_one_by_one(const std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>& merges, Ids ids) {
  while (true) {
    size_t best = ids.size();
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found == merges.end()) continue;
      if (best == ids.size() || found->second.first < merges.at({ids[best], ids[best + 1]}).first) best = i;
    }
    if (best == ids.size()) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, MergesAsOneByOneDoes) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Vocabulary vocabulary{{"a", 0}, {"b", 1}, {"c", 2}};
    std::vector<std::string> tokens{"a", "b", "c"};
    Merges merges;
    std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> ranks;
    while (merges.size() < 8) {
      const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
      const auto id = static_cast<int64_t>(tokens.size());
      if (!vocabulary.emplace(left + right, id).second) continue;  // another pair gives the same token
      tokens.push_back(left + right);
      ranks[{vocabulary.at(left), vocabulary.at(right)}] = {static_cast<int64_t>(merges.size()), id};
      merges.emplace_back(left, right);
    }
    const Bpe bpe(vocabulary, merges, "test");
    for (int i = 0; i < 20; ++i) {
      Ids ids(random() % 12);
      for (int64_t& id : ids) id = static_cast<int64_t>(random() % 3);
      EXPECT_EQ(bpe.merge(ids), merged_one_by_one(ranks, ids));
    }
  }
}

}  // namespace
}  // namespace vitrail::text
