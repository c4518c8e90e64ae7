// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/rearrange.h"

#include <gtest/gtest.h>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<float> values(shape.numel());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(shape, values);
}

Tensor rearranged(const std::string& pattern, const Tensor& from, const std::map<std::string, int64_t>& sizes = {}) {
  const Rearrange rearrange = Rearrange::parse(pattern, "test");
  const Tensor to = rearrange.apply(from, sizes, "test");
  EXPECT_EQ(to.shape(), rearrange.shape(from.shape(), sizes, "test")) << pattern;
  return to.contiguous();
}

TEST(Rearrange, ChannelsOfAPatchMoveFromLastToFirst) {
  const Tensor from = counting({2, 2 * 3 * 4});  // d (p1 p2 c) with p1 2, p2 3, c 4
  const Tensor to = rearranged("d (p1 p2 c) -> d c p1 p2", from, {{"p1", 2}, {"p2", 3}});
  ASSERT_EQ(to.shape(), (Shape{2, 4, 2, 3}));
  for (int d = 0; d < 2; ++d) {
    for (int c = 0; c < 4; ++c) {
      for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < 3; ++x) {
          EXPECT_EQ(to.data<float>()[((d * 4 + c) * 2 + y) * 3 + x], d * 24 + (y * 3 + x) * 4 + c);
        }
      }
    }
  }
}

TEST(Rearrange, HeadsMergeAsInGooglesKernels) {
  const Tensor to = rearranged("d h k -> (h k) d", counting({5, 2, 3}));
  ASSERT_EQ(to.shape(), (Shape{6, 5}));
  EXPECT_EQ(to.data<float>()[4 * 5 + 3], 3 * 6 + 1 * 3 + 1);  // h 1, k 1, d 3
}

TEST(Rearrange, AxesOfOneAreAddedAndRemoved) {
  EXPECT_EQ(rearranged("n d -> 1 n d", counting({7, 3})).shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(rearranged("1 n (1 d) -> (n d) 1", counting({1, 7, 3})).shape(), (Shape{21, 1}));
  EXPECT_EQ(rearranged("d -> () d", counting({3})).shape(), (Shape{1, 3}));
}

TEST(Rearrange, AnEllipsisStandsForAnyNumberOfAxes) {
  EXPECT_EQ(rearranged("... d -> 1 (...) d", counting({7, 3})).shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(rearranged("... d -> 1 (...) d", counting({1, 7, 3})).shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(rearranged("... d -> 1 (...) d", counting({3})).shape(), (Shape{1, 1, 3}));
  const Tensor to = rearranged("a ... b -> b ... a", counting({2, 3, 4, 5}));
  ASSERT_EQ(to.shape(), (Shape{5, 3, 4, 2}));
  EXPECT_EQ(to.data<float>()[((4 * 3 + 2) * 4 + 1) * 2 + 1], ((1 * 3 + 2) * 4 + 1) * 5 + 4);
}

TEST(Rearrange, MalformedPatternsAreErrors) {
  for (const char* pattern :
       {"", "a b", "a -> b", "a b -> a", "a a -> a", "a -> a a", "(a b -> a b", "a) -> a", "a ((b)) -> a b", "a-b -> a",
        "2 a -> a", "a .. -> a ..", "(...) a -> a (...)", "a b c d e f g h i -> (a b c d e f g h i)",
        "(a b c d e f g h i) -> (i h g f e d c b a)"}) {
    EXPECT_THROW(Rearrange::parse(pattern, "test"), Error) << pattern;
  }
}

TEST(Rearrange, ShapesThatDoNotFitAreErrorsThatNameThePattern) {
  const auto error_of = [](const std::string& pattern, const Shape& shape,
                           const std::map<std::string, int64_t>& sizes) {
    try {
      Rearrange::parse(pattern, "rule 3").shape(shape, sizes, "rule 3");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(error_of("a b -> b a", {2}, {}).find("rule 3: expected a shape that fits \"a b -> b a\", got [2]"),
            std::string::npos);
  EXPECT_NE(error_of("(a b) -> b a", {6}, {}).find("no size for"), std::string::npos);
  EXPECT_NE(error_of("(a b) -> b a", {6}, {{"a", 4}}).find("[6]"), std::string::npos);
  EXPECT_NE(error_of("(a b) -> b a", {6}, {{"a", 0}}).find("[6]"), std::string::npos);
  EXPECT_NE(error_of("(a b) -> b a", {6}, {{"a", int64_t{1} << 62}, {"b", 8}}).find("[6]"), std::string::npos);
  EXPECT_NE(error_of("1 a -> a", {2, 3}, {}).find("[2, 3]"), std::string::npos);
  EXPECT_NE(error_of("a ... b -> a b ...", {3}, {}).find("[3]"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::weights
