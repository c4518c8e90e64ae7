// SPDX-License-Identifier: Apache-2.0
// Views against copies: a view of a view must have the elements of the copy.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/tensors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

using testing::counting;

int64_t random_index(RandomStream& random, int64_t n) {
  return static_cast<int64_t>(random.uniform() * static_cast<double>(n));
}

// A random tensor of rank 4 with transposed, narrowed and expanded axes; extents of 1 are frequent.
Tensor strided_tensor(RandomStream& random) {
  Tensor t = counting({1 + random_index(random, 3), 1 + random_index(random, 4), 1 + random_index(random, 3),
                       1 + random_index(random, 4)});
  for (int64_t step = random_index(random, 4); step > 0; --step) {
    const int axis = static_cast<int>(random_index(random, 4));
    switch (random_index(random, 3)) {
      case 0:
        t = t.transpose(axis, static_cast<int>(random_index(random, 4)));
        break;
      case 1: {
        const int64_t start = random_index(random, t.size(axis));
        t = t.narrow(axis, start, 1 + random_index(random, t.size(axis) - start));
        break;
      }
      default:
        if (t.size(axis) == 1) {
          Shape wider = t.shape();
          wider[axis] = 1 + random_index(random, 3);
          t = t.expand(wider);
        }
    }
  }
  return t;
}

// A random shape of `numel` elements.
Shape shape_of(RandomStream& random, int64_t numel) {
  Shape shape;
  while (numel > 1 && shape.rank() < 6) {
    int64_t factor = 1 + random_index(random, numel);
    while (numel % factor != 0) --factor;
    shape.push_back(factor);
    numel /= factor;
  }
  shape.push_back(numel);
  return shape;
}

TEST(View, EqualsTheCopyOrThrows) {
  RandomStream random(1);
  int views = 0, refusals = 0;
  for (int round = 0; round < 4000; ++round) {
    const Tensor t = strided_tensor(random);
    const Shape shape = shape_of(random, t.numel());
    const Tensor expected = t.clone().view(shape);  // a contiguous tensor allows every view
    ASSERT_TRUE(testing::close(t.reshape(shape), expected, 0)) << t.shape() << t.strides() << " → " << shape;
    try {
      const Tensor view = t.view(shape);
      ASSERT_TRUE(testing::close(view, expected, 0)) << t.shape() << t.strides() << " → " << shape;
      ASSERT_EQ(view.storage(), t.storage());
      ++views;
    } catch (const Error&) {
      ++refusals;
    }
  }
  EXPECT_GT(views, 1000);
  EXPECT_GT(refusals, 500);
}

TEST(View, OfOneTokenOfAFusedProjectionIsNotContiguous) {
  // [B, 1, 3, H, d] → q [B, 1, H, d]: the strides of B and of the single token are equal, but q is not contiguous.
  const Tensor q = counting({2, 1, 3, 2, 4}).select(2, 0);
  EXPECT_TRUE(testing::close(q.view({2, 1, 8}), q.clone().view({2, 1, 8}), 0));
  EXPECT_THROW(q.view({16}), Error);
}

TEST(View, MergesAxesAcrossAnExtentOfOne) {
  const Tensor t = counting({2, 3, 2}).select(2, 0).unsqueeze(1).transpose(0, 1);  // [1, 2, 3], every second element
  EXPECT_EQ(t.view({6}).storage(), t.storage());
}

TEST(View, InfersOneExtent) {
  const Tensor one = counting({1}), six = counting({6}), none = counting({0});
  EXPECT_EQ(six.view({2, -1}).shape(), (Shape{2, 3}));
  EXPECT_THROW(six.view({4, -1}), Error);
  EXPECT_THROW(one.view({-1, -1}), Error);
  EXPECT_THROW(six.view({-2, -3}), Error);
  EXPECT_THROW(none.view({-1, 0}), Error);  // any extent would fit
  EXPECT_EQ(none.view({3, 0}).shape(), (Shape{3, 0}));
  EXPECT_THROW(six.view({-1, 0}), Error);
  EXPECT_THROW(none.view({int64_t{1} << 62, 4}), Error);  // 2^64 wraps around to 0
}

TEST(View, InvalidAxesAndRangesAreErrors) {
  const Tensor t = counting({2, 5});
  EXPECT_THROW(t.narrow(1, 3, 3), Error);
  EXPECT_THROW(t.narrow(1, -1, 1), Error);
  EXPECT_THROW(t.narrow(1, INT64_MAX, 1), Error);
  EXPECT_THROW(t.select(0, 2), Error);
  EXPECT_THROW(t.select(0, -3), Error);
  EXPECT_EQ(*t.select(0, -1).data<float>(), 5);
  EXPECT_THROW(t.permute({0}), Error);
  EXPECT_THROW(t.permute({0, 0}), Error);
  EXPECT_THROW(t.transpose(0, 2), Error);
  EXPECT_THROW(t.squeeze(0), Error);
  EXPECT_THROW(t.flatten(1, 0), Error);
}

TEST(View, ExpandRepeatsExtentsOfOneOnly) {
  const Tensor row = counting({1, 3});
  const Tensor rows = row.expand({2, 4, -1});
  EXPECT_EQ(rows.shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(rows.strides(), (Shape{0, 0, 1}));
  EXPECT_THROW(row.expand({2, 4}), Error);
  EXPECT_THROW(row.expand({3}), Error);
  EXPECT_THROW(row.expand({-2, 3}), Error);
}

TEST(View, AxesOfExtentOneComeAndGoAnywhere) {
  const Tensor t = counting({2, 3}).transpose(0, 1);
  for (const int axis : {0, 1, 2, -1, -2, -3}) {
    const Tensor longer = t.unsqueeze(axis);
    EXPECT_EQ(longer.size(axis), 1);
    EXPECT_EQ(longer.rank(), 3);
    EXPECT_EQ(longer.storage(), t.storage());
    EXPECT_TRUE(testing::close(longer.squeeze(axis), t, 0)) << axis;
    EXPECT_TRUE(testing::close(longer.contiguous().view({3, 2}), t, 0)) << axis;
  }
  EXPECT_THROW(t.unsqueeze(3), Error);
  EXPECT_THROW(t.unsqueeze(-4), Error);
  EXPECT_EQ(counting({3}).unsqueeze(0).shape(), (Shape{1, 3}));
  EXPECT_TRUE(counting({3}).unsqueeze(1).is_contiguous());
}

TEST(View, FlattenJoinsTheAxesFromTheFirstToTheLast) {
  const Tensor t = counting({2, 3, 4, 5});
  EXPECT_EQ(t.flatten().shape(), (Shape{120}));
  EXPECT_EQ(t.flatten(1).shape(), (Shape{2, 60}));
  EXPECT_EQ(t.flatten(0, 1).shape(), (Shape{6, 4, 5}));
  EXPECT_EQ(t.flatten(1, -2).shape(), (Shape{2, 12, 5}));
  EXPECT_EQ(t.flatten(2, 2).shape(), t.shape());
  EXPECT_EQ(t.flatten(1, 2).storage(), t.storage());
  const Tensor swapped = t.transpose(1, 2);
  EXPECT_NE(swapped.flatten(1, 2).storage(), t.storage()) << "a copy";
  EXPECT_TRUE(testing::close(swapped.flatten(1, 2), swapped.contiguous().view({2, 12, 5}), 0));
}

TEST(View, AxesCountFromBothEnds) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_TRUE(testing::close(t.transpose(-1, 0), t.permute({2, 1, 0}), 0));
  EXPECT_TRUE(testing::close(t.permute({-1, -3, -2}), t.permute({2, 0, 1}), 0));
  EXPECT_TRUE(testing::close(t.narrow(-2, 1, 2), t.narrow(1, 1, 2), 0));
  EXPECT_TRUE(testing::close(t.select(-1, -1), t.select(2, 3), 0));
  EXPECT_EQ(t.narrow(1, 3, 0).shape(), (Shape{2, 0, 4})) << "an empty range at the end";
  EXPECT_THROW(t.narrow(1, 4, 0), Error);
  EXPECT_THROW(t.narrow(1, 0, -1), Error);
}

// A new axis has the stride of a contiguous tensor, so that it can be merged with the one behind it.
TEST(View, NewAxesHaveTheStridesOfTheirPlace) {
  const Tensor t = counting({4, 2, 3});
  EXPECT_EQ(t.unsqueeze(0).strides(), (Shape{24, 6, 3, 1}));
  EXPECT_EQ(t.unsqueeze(1).strides(), (Shape{6, 6, 3, 1}));
  EXPECT_EQ(t.unsqueeze(2).strides(), (Shape{6, 3, 3, 1}));
  EXPECT_EQ(t.unsqueeze(3).strides(), (Shape{6, 3, 1, 1}));
  EXPECT_EQ(t.unsqueeze(-1).shape(), (Shape{4, 2, 3, 1}));
  EXPECT_EQ(counting({}).unsqueeze(0).strides(), Shape{1});
  EXPECT_EQ(t.narrow(1, 1, 1).squeeze(1).strides(), (Shape{6, 1}));
  EXPECT_EQ(t.narrow(1, 1, 1).squeeze(1).offset(), 3);
  EXPECT_EQ(t.narrow(0, 2, 2).narrow(2, 1, 1).offset(), 13);
  EXPECT_EQ(t.select(0, -1).offset(), 18);
}

TEST(View, ExpandKeepsTheStridesOfWhatItDoesNotRepeat) {
  const Tensor t = counting({2, 1, 3}).transpose(0, 2);  // [3, 1, 2], strides [1, 3, 3]
  EXPECT_EQ(t.expand({3, 1, 2}).strides(), (Shape{1, 3, 3}));
  EXPECT_EQ(t.expand({3, 4, 2}).strides(), (Shape{1, 0, 3}));
  EXPECT_EQ(t.expand({5, 3, 4, -1}).strides(), (Shape{0, 1, 0, 3}));
  EXPECT_EQ(t.expand({1, 3, 1, 2}).strides(), (Shape{0, 1, 3, 3}));
  EXPECT_EQ(t.expand({-1, -1, -1}).shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(t.expand({-1, 3, 1, 2}).shape(), (Shape{1, 3, 1, 2})) << "a new axis of -1 is 1";
  EXPECT_EQ(t.expand({3, 0, 2}).shape(), (Shape{3, 0, 2})) << "an extent of 1 may become 0";
  EXPECT_EQ(counting({4}).narrow(0, 2, 1).expand({3}).offset(), 2);
  EXPECT_EQ(*counting({4}).narrow(0, 2, 1).expand({3}).data<float>(), 2);
}

// The stride of an extent of 1 says nothing about the memory.
TEST(View, MergesAxesAroundAnExtentOfOneWithAnyStride) {
  const Tensor t = counting({7, 2, 3, 2}).narrow(0, 0, 1).select(3, 0).transpose(0, 1);
  ASSERT_EQ(t.shape(), (Shape{2, 1, 3}));
  ASSERT_EQ(t.strides(), (Shape{6, 12, 2}));
  EXPECT_EQ(t.view({6}).storage(), t.storage());
  EXPECT_TRUE(testing::close(t.view({6}), Tensor::from<float>({6}, {0, 2, 4, 6, 8, 10}), 0));
}

TEST(View, OfNoElementsHasAnyShapeOfNone) {
  const Tensor t = counting({2, 0, 3}).transpose(0, 2);
  ASSERT_FALSE(t.is_contiguous());
  EXPECT_EQ(t.view({0, 5}).shape(), (Shape{0, 5}));
  EXPECT_EQ(t.reshape({4, 0}).shape(), (Shape{4, 0}));
}

}  // namespace
}  // namespace vitrail
