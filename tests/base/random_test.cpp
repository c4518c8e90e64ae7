// SPDX-License-Identifier: Apache-2.0
// Philox is tested against the known-answer vectors that its authors publish; also the streams built on it.
#include "vitrail/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace vitrail {
namespace {

using Block = std::array<uint32_t, 4>;

// From the file kat_vectors of the authors' Random123 library: philox4x32 with 10 rounds.
TEST(Philox, MatchesThePublishedTestVectors) {
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones}, {ones, ones, ones, ones}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, ReturnsTheBlocksOfItsKeyInOrder) {
  RandomStream stream(0x0123456789abcdef, 0xfedcba9876543210);
  for (uint32_t block = 0; block < 3; ++block) {
    const Block expected = philox({0x89abcdef, 0x01234567}, {block, 0, 0x76543210, 0xfedcba98});
    for (const uint32_t word : expected) EXPECT_EQ(stream.bits(), word);
  }
}

TEST(RandomStream, CopyContinuesWithTheSameDraws) {
  RandomStream stream(7);
  for (int i = 0; i < 5; ++i) stream.bits();
  RandomStream copy = stream;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(copy.bits(), stream.bits());
}

TEST(RandomStream, StreamsOfOneKeyDiffer) {
  std::set<uint32_t> first;
  for (uint64_t stream = 0; stream < 1000; ++stream) first.insert(RandomStream(1, stream).bits());
  EXPECT_GE(first.size(), 999u);  // one collision of 32-bit words among 1000 has probability 1e-4
}

// Sample moments are within 5 standard errors of their expectation.
TEST(RandomStream, UniformIsInRangeWithTheRightMoments) {
  constexpr int n = 200000;
  RandomStream stream(3);
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 1.0 / 2, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

TEST(RandomStream, NormalHasTheRightMoments) {
  constexpr int n = 200000;
  RandomStream stream(4);
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
}

// 27 and 26 bits of two words, the high ones first; a normal number is the cosine of the Box–Muller pair.
TEST(RandomStream, UniformAndNormalAreThoseOfItsBits) {
  RandomStream words(5, 6), uniforms(5, 6), normals(5, 6);
  const auto uniform = [&] {
    const double high = words.bits() >> 5, low = words.bits() >> 6;
    return (high * 67108864 + low) / 9007199254740992;
  };
  for (int i = 0; i < 100; ++i) {
    const double first = uniform(), second = uniform();
    EXPECT_EQ(uniforms.uniform(), first);
    EXPECT_EQ(uniforms.uniform(), second);
    EXPECT_NEAR(normals.normal(), std::sqrt(-2 * std::log(1 - first)) * std::cos(2 * std::acos(-1.0) * second), 1e-14);
  }
}

TEST(RandomKey, DependsOnEveryPartAndOnTheirOrder) {
  const std::set<uint64_t> keys = {random_key("a"),       random_key("b"),       random_key("a", 1),
                                   random_key("a", 0, 1), random_key("a", 1, 2), random_key("a", 2, 1),
                                   random_key("")};
  EXPECT_EQ(keys.size(), 7u);
}

TEST(RandomKey, IsFnv1aOverTheNameAndTheLittleEndianWords) {
  uint64_t hash = 14695981039346656037u;
  for (const unsigned char byte : {'d',  'r',  'o',    'p',  '\x02', '\x01', '\0', '\0', '\0', '\0',
                                   '\0', '\0', '\x03', '\0', '\0',   '\0',   '\0', '\0', '\0', '\0'}) {
    hash = (hash ^ byte) * 1099511628211u;
  }
  EXPECT_EQ(random_key("drop", 0x0102, 3), hash);
}

}  // namespace
}  // namespace vitrail
