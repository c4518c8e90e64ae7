// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/rearrange.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/tensors.h"
#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

Tensor rearranged(const std::string& pattern, const Tensor& from, const std::map<std::string, int64_t>& sizes = {}) {
  const Rearrange rearrange = Rearrange::parse(pattern, "test");
  const Tensor to = rearrange.apply(from, sizes, "test");
  EXPECT_EQ(to.shape(), rearrange.shape(from.shape(), sizes, "test")) << pattern;
  return to.contiguous();
}

TEST(Rearrange, ChannelsOfAPatchMoveFromLastToFirst) {
  const Tensor from = testing::counting({2, 2 * 3 * 4});  // d (p1 p2 c) with p1 2, p2 3, c 4
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
  const Tensor to = rearranged("d h k -> (h k) d", testing::counting({5, 2, 3}));
  ASSERT_EQ(to.shape(), (Shape{6, 5}));
  EXPECT_EQ(to.data<float>()[4 * 5 + 3], 3 * 6 + 1 * 3 + 1);  // h 1, k 1, d 3
}

TEST(Rearrange, AxesOfOneAreAddedAndRemoved) {
  EXPECT_EQ(rearranged("n d -> 1 n d", testing::counting({7, 3})).shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(rearranged("1 n (1 d) -> (n d) 1", testing::counting({1, 7, 3})).shape(), (Shape{21, 1}));
  EXPECT_EQ(rearranged("d -> () d", testing::counting({3})).shape(), (Shape{1, 3}));
}

TEST(Rearrange, AnEllipsisStandsForAnyNumberOfAxes) {
  EXPECT_EQ(rearranged("... d -> 1 (...) d", testing::counting({7, 3})).shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(rearranged("... d -> 1 (...) d", testing::counting({1, 7, 3})).shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(rearranged("... d -> 1 (...) d", testing::counting({3})).shape(), (Shape{1, 1, 3}));
  const Tensor to = rearranged("a ... b -> b ... a", testing::counting({2, 3, 4, 5}));
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

TEST(Rearrange, TheErrorSaysWhatIsWrongWithThePattern) {
  const std::pair<std::string, std::string> cases[] = {
      {"a b", "\"a b\", which has no \"->\""},
      {"a -> b", "the axis \"b\", which is not on the left of \"a -> b\""},
      {"a b -> a", "\"a b -> a\", which loses an axis"},
      {"a a -> a", "the axis \"a\" twice on one side of \"a a -> a\""},
      {"a b -> a b a", "the axis \"a\" twice on one side of \"a b -> a b a\""},
      {"(a b -> a b", "parentheses that do not pair in \"(a b -> a b\""},
      {"a b -> (a b", "parentheses that do not pair in \"a b -> (a b\""},
      {"a) -> a", "parentheses that do not pair in \"a) -> a\""},
      {"((a)) -> a", "parentheses that do not pair in \"((a)) -> a\""},
      {"a, b -> a b", "the character ',' in \"a, b -> a b\""},
      {"2a -> 2a", "the axis \"2a\" in \"2a -> 2a\""},
      {"2 a -> a 2", "the axis \"2\" in \"2 a -> a 2\""},
      {"a.b -> a.b", "the axis \"a.b\" in \"a.b -> a.b\""},
      {".. a -> a ..", "the axis \"..\" in \".. a -> a ..\""},
      {"(...) a -> a ...", "\"...\" in parentheses on the left of \"(...) a -> a ...\""},
      {"a -> 1 1 1 1 1 1 1 1 a", "more than 8 dimensions in \"a -> 1 1 1 1 1 1 1 1 a\""},
      {"(a b c d e f g h i) -> (a b c d e f g h i)", "more than 8 axes"}};
  for (const auto& [pattern, want] : cases) {
    EXPECT_ERROR(testing::error_of([&, p = pattern] { Rearrange::parse(p, "rule 4"); }), "rule 4", want);
  }
  for (const char* pattern :
       {"->", "a->a", "a_1 B2 -> B2 a_1", "(a b c d e f g h) -> (h g f e d c b a)", "a0 z9 -> (a0 z9)"})
    EXPECT_EQ(Rearrange::parse(pattern, "rule 4").pattern(), pattern);
}

TEST(Rearrange, KnowsItsAxes) {
  const Rearrange rearrange = Rearrange::parse("a (b c) 1 ... -> ... c a b", "rule 4");
  for (const char* axis : {"a", "b", "c", "..."}) EXPECT_TRUE(rearrange.has_axis(axis)) << axis;
  for (const char* axis : {"", "1", "d", "bc", "A"}) EXPECT_FALSE(rearrange.has_axis(axis)) << axis;
}

TEST(Rearrange, TheErrorSaysWhatDoesNotFit) {
  const auto error = [](const std::string& pattern, const Shape& shape, const std::map<std::string, int64_t>& sizes) {
    const Rearrange rearrange = Rearrange::parse(pattern, "rule 4");
    const std::string text = testing::error_of([&] { rearrange.shape(shape, sizes, "t"); });
    EXPECT_EQ(testing::error_of([&] { rearrange.apply(Tensor::zeros(shape), sizes, "t"); }), text);
    const std::string begin = "t: expected a shape that fits \"" + pattern + "\", got ";
    EXPECT_TRUE(text.starts_with(begin)) << text;
    return text.substr(begin.size());
  };
  EXPECT_EQ(error("a b -> b a", {2, 3, 4}, {}), "[2, 3, 4]");
  EXPECT_EQ(error("a b -> b a", {2, 3}, {{"a", 3}}), "[2, 3]");
  EXPECT_EQ(error("(a b) -> b a", {6}, {}), "no size for \"a\" or \"b\"");
  EXPECT_EQ(error("x (a b c) -> b a x c", {2, 6}, {{"b", 2}}), "no size for \"a\" or \"c\"");
  EXPECT_EQ(error("(a b) -> b a", {7}, {{"a", 2}}), "[7]");
  EXPECT_EQ(error("(a b) -> b a", {6}, {{"a", 2}, {"b", 2}}), "[6]");
  EXPECT_EQ(error("(a b) -> b a", {0}, {{"a", 0}}), "[0]");
  EXPECT_EQ(error("a 1 -> a", {6, 2}, {}), "[6, 2]");
  EXPECT_EQ(error("a b c ... -> ... c b a", {6, 2}, {}), "[6, 2]");
}

// Against loops over all indices.
TEST(Rearrange, MovesSplitsAndMergesAxes) {
  const Tensor from = testing::counting({2, 3, 20});
  const Tensor to = rearranged("a b (c d) -> (d a) 1 (b c)", from, {{"d", 5}});
  ASSERT_EQ(to.shape(), (Shape{10, 1, 12}));
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t c = 0; c < 4; ++c) {
        for (int64_t d = 0; d < 5; ++d) {
          EXPECT_EQ(to.data<float>()[(d * 2 + a) * 12 + b * 4 + c], from.data<float>()[(a * 3 + b) * 20 + c * 5 + d]);
        }
      }
    }
  }
  EXPECT_EQ(rearranged("a (b c) -> c a b", testing::counting({3, 0}), {{"c", 4}}).shape(), (Shape{4, 3, 0}));
  EXPECT_EQ(rearranged("-> 1 ()", Tensor::full({}, 5)).shape(), (Shape{1, 1}));
}

TEST(Rearrange, AnEllipsisIsMovedAndMergedWithOthers) {
  const Tensor from = testing::counting({2, 3, 4, 5});
  const Tensor merged = rearranged("a ... d -> d (... a)", from);
  ASSERT_EQ(merged.shape(), (Shape{5, 24}));
  const Tensor moved = rearranged("... c d -> (d c) ...", from);
  ASSERT_EQ(moved.shape(), (Shape{20, 2, 3}));
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t c = 0; c < 4; ++c) {
        for (int64_t d = 0; d < 5; ++d) {
          const float value = from.data<float>()[((a * 3 + b) * 4 + c) * 5 + d];
          EXPECT_EQ(merged.data<float>()[d * 24 + (b * 4 + c) * 2 + a], value);
          EXPECT_EQ(moved.data<float>()[((d * 4 + c) * 2 + a) * 3 + b], value);
        }
      }
    }
  }
  EXPECT_EQ(rearranged("(a b) ... c -> c b ... a", testing::counting({6, 4}), {{"a", 2}}).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(rearranged("a ... -> ... a", testing::counting({6})).shape(), Shape{6});
  EXPECT_EQ(rearranged("... -> ...", Tensor::full({}, 5)).shape(), Shape{});
}

TEST(Rearrange, IsAViewIfStridesAllow) {
  const Tensor from = testing::counting({2, 3, 4});
  EXPECT_EQ(Rearrange::parse("a b c -> c a b", "t").apply(from, {}, "t").raw(), from.raw());
  EXPECT_EQ(Rearrange::parse("a b (c d) -> d a 1 b c", "t").apply(from, {{"c", 2}}, "t").raw(), from.raw());
  const Tensor part = from.narrow(1, 1, 2);
  const Tensor turned = Rearrange::parse("a b c -> c b a", "t").apply(part, {}, "t");
  EXPECT_EQ(turned.raw(), part.raw());
  EXPECT_EQ(turned.contiguous().data<float>()[1 * 4 + 1 * 2 + 1], 12 + 8 + 1);
}

}  // namespace
}  // namespace vitrail::weights
