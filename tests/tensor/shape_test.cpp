// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/shape.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail {
namespace {

// All shapes of up to three axes of these extents.
std::vector<Shape> small_shapes() {
  std::vector<Shape> shapes{Shape{}};
  for (size_t from = 0, rank = 0; rank < 3; ++rank) {
    const size_t end = shapes.size();
    for (; from < end; ++from) {
      for (const int64_t extent : {0, 1, 2, 3}) {
        Shape longer = shapes[from];
        longer.push_back(extent);
        shapes.push_back(longer);
      }
    }
  }
  return shapes;
}

// The extent `from_end` axes before the last; 1 before the first axis.
int64_t extent_of(const Shape& shape, int from_end) {
  return from_end < shape.rank() ? shape[shape.rank() - 1 - from_end] : 1;
}

// NumPy's rule: extents are equal, or one of them is 1 and gives way to the other, also to 0.
TEST(BroadcastShapes, FollowsNumPysRule) {
  for (const Shape& a : small_shapes()) {
    for (const Shape& b : small_shapes()) {
      const int rank = std::max(a.rank(), b.rank());
      std::array<int64_t, 3> want{};
      bool fits = true;
      for (int i = 0; i < rank; ++i) {
        const int64_t x = extent_of(a, i), y = extent_of(b, i);
        fits = fits && (x == y || x == 1 || y == 1);
        want[static_cast<size_t>(rank - 1 - i)] = x == 1 ? y : x;
      }
      if (fits) {
        ASSERT_EQ(broadcast_shapes(a, b, "add"), Shape(std::span<const int64_t>(want.data(), rank))) << a << " " << b;
      } else {
        ASSERT_THROW(broadcast_shapes(a, b, "add"), Error) << a << " " << b;
      }
    }
  }
  EXPECT_ERROR(testing::error_of([] { broadcast_shapes({2, 3}, {4}, "add"); }), "add", "[2, 3] and [4]");
}

TEST(Shape, CountsElementsAndStridesOfTheLastAxisFirst) {
  for (const Shape& shape : small_shapes()) {
    const Shape strides = contiguous_strides(shape);
    int64_t step = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      ASSERT_EQ(strides[i], step) << shape;
      step *= shape[i];
    }
    ASSERT_EQ(shape.numel(), step) << shape;
    ASSERT_EQ(checked_numel({shape.begin(), shape.end()}, "x"), step) << shape;
  }
  EXPECT_EQ(Shape{}.numel(), 1);
}

TEST(Shape, IsEqualToAnotherOfTheSameExtentsAndRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_FALSE((Shape{2}) == (Shape{2, 1}));
  EXPECT_FALSE((Shape{1, 2}) == (Shape{2}));
  EXPECT_FALSE(Shape{} == Shape{1});
}

TEST(Shape, CountsFromTheEnd) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.back(), 5);
  EXPECT_EQ(shape.back(2), 2);
  EXPECT_EQ(shape.to_string(), "[2, 3, 5]");
  EXPECT_EQ(Shape{}.to_string(), "[]");
  EXPECT_EQ(Shape{7}.to_string(), "[7]");
}

TEST(Shape, HasAtMostEightAxes) {
  Shape shape{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(shape.rank(), 8);
  EXPECT_EQ(shape.back(), 8);
  EXPECT_THROW(shape.push_back(9), Error);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), Error);
  EXPECT_EQ(shape.numel(), 40320);
}

TEST(CheckedNumel, RefusesNegativeExtentsAndMoreThan64Bits) {
  const auto count = [](std::vector<int64_t> extents) { return checked_numel(extents, "file"); };
  EXPECT_EQ(count({int64_t{1} << 31, int64_t{1} << 31}), int64_t{1} << 62);
  EXPECT_THROW(count({int64_t{1} << 32, int64_t{1} << 31}), Error);
  EXPECT_EQ(count({int64_t{1} << 62, 0}), 0);
  EXPECT_THROW(count({0, int64_t{1} << 62, 4}), Error) << "the strides would overflow";
  EXPECT_THROW(count({int64_t{1} << 62, 4, 0}), Error);
  for (const std::vector<int64_t>& extents : {std::vector<int64_t>{-1}, {0, -1}, {3, -2, -2}})
    EXPECT_TRUE(testing::contains(testing::error_of([&] { count(extents); }), "file: expected extents of at least 0"));
}

}  // namespace
}  // namespace vitrail
