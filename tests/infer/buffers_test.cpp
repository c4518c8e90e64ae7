// SPDX-License-Identifier: Apache-2.0
// The memory plan of a program, by hand for small lists of operations.
#include "vitrail/infer/buffers_internal.h"

#include <gtest/gtest.h>

#include "tests/infer/meta.h"
#include "tests/support/messages.h"

namespace vitrail::infer {
namespace {

using ops::OpKind;

FusedOperation operation(OpKind kind, std::vector<Tensor> inputs, const Tensor& output, const Tensor& residual = {}) {
  return {recorded({.kind = kind}, std::move(inputs), {output}), residual, {}};
}

TEST(Aligned, RoundsUpToTheAlignmentOfAllocations) {
  EXPECT_EQ(aligned(0), 0u);
  EXPECT_EQ(aligned(1), 64u);
  EXPECT_EQ(aligned(64), 64u);
  EXPECT_EQ(aligned(65), 128u);
}

// Lifetimes of a chain: a and c do not overlap, b overlaps both and is the largest.
TEST(BufferPlan, BuffersOfOtherLifetimesShareMemory) {
  const Tensor x = meta({10}), a = meta({100}), b = meta({300}), c = meta({50});
  const BufferPlan plan(
      {operation(OpKind::other, {x}, a), operation(OpKind::other, {a}, b), operation(OpKind::other, {b}, c)}, {x}, {c});
  EXPECT_EQ(plan.offset_of(b), 0u);
  EXPECT_EQ(plan.offset_of(a), 1216u) << "300 floats, rounded up";
  EXPECT_EQ(plan.offset_of(c), 1216u);
  EXPECT_EQ(plan.bytes(), 1216u + 448u);
  EXPECT_EQ(plan.number_of(a), 0);
  EXPECT_EQ(plan.number_of(b), 1);
  EXPECT_EQ(plan.number_of(c), 2);
  EXPECT_FALSE(plan.holds(x));
  EXPECT_TRUE(plan.holds(a));
  EXPECT_EQ(plan.input_of(x), 0u);
  EXPECT_EQ(plan.input_of(a), std::nullopt);
}

// A small buffer fits between two that live as long; where it does not fit, it follows them.
TEST(BufferPlan, TakesTheLowestOffsetThatIsFree) {
  const Tensor x = meta({16}), first = meta({64}), large = meta({128}), last = meta({96}), small = meta({48}),
               sum = meta({16});
  // large lives throughout at 0; first (256 bytes) and last (384 bytes) follow it, one after the other in time.
  const std::vector<FusedOperation> list{operation(OpKind::other, {x}, large), operation(OpKind::other, {large}, first),
                                         operation(OpKind::cat, {large, first}, last),
                                         operation(OpKind::cat, {large, last}, small),
                                         operation(OpKind::cat, {large, small}, sum)};
  const BufferPlan plan(list, {x}, {sum});
  EXPECT_EQ(plan.offset_of(large), 0u);
  EXPECT_EQ(plan.offset_of(last), 512u);
  EXPECT_EQ(plan.offset_of(first), 512u + 384u) << "the second operation still reads it when `last` is written";
  EXPECT_EQ(plan.offset_of(small), 512u + 384u);
  EXPECT_EQ(plan.offset_of(sum), 512u);
  EXPECT_EQ(plan.bytes(), 512u + 384u + 256u);
}

TEST(BufferPlan, ViewsAreInTheirBuffer) {
  const Tensor x = meta({4}), a = meta({3, 5}), b = meta({5});
  const BufferPlan plan({operation(OpKind::other, {x}, a), operation(OpKind::other, {a.select(0, 2)}, b)},
                        {meta({1}), x}, {b});
  EXPECT_EQ(plan.offset_of(a.select(0, 2)), plan.offset_of(a) + 40);
  EXPECT_EQ(plan.offset_of(a.narrow(1, 3, 2)), plan.offset_of(a) + 12);
  EXPECT_EQ(plan.number_of(a.select(0, 2)), plan.number_of(a));
  EXPECT_EQ(plan.input_of(x.narrow(0, 1, 2)), 1u);
}

TEST(BufferPlan, AReadOfWhatNothingWroteIsAnError) {
  const Tensor x = meta({4}), strange = meta({2, 7}), y = meta({4});
  const std::string message = testing::error_of([&] {
    BufferPlan({operation(OpKind::other, {x, strange}, y)}, {x}, {y});
  });
  EXPECT_EQ(message,
            "compile: expected operations that read inputs or earlier results, got a read of [2, 7], which nothing has "
            "written");
  EXPECT_NO_THROW(BufferPlan({operation(OpKind::other, {x, Tensor::zeros({4})}, y)}, {x}, {y})) << "a constant";
  EXPECT_THROW(BufferPlan({operation(OpKind::other, {x}, y)}, {x}, {strange}), Error) << "an output";
  // Packed weights are not read by the program.
  EXPECT_NO_THROW(BufferPlan({operation(OpKind::linear, {x, meta({4, 4}), meta({4})}, y)}, {x}, {y}));
  EXPECT_THROW(BufferPlan({operation(OpKind::linear, {strange, meta({4, 4})}, y)}, {x}, {y}), Error);
  EXPECT_THROW(BufferPlan({operation(OpKind::linear, {x, meta({4, 4})}, y, strange)}, {x}, {y}), Error) << "residual";
  // A part of a concatenation may be written into it before: its own buffer is the output's.
  EXPECT_NO_THROW(BufferPlan({operation(OpKind::cat, {x, y.narrow(0, 0, 1)}, y)}, {x}, {y}));
}

// x → h → branch = linear(g) + h, in the memory of h.
TEST(BufferPlan, AResidualThatNothingReadsAfterwardsIsWrittenInPlace) {
  const Tensor x = meta({2, 8}), h = meta({2, 8}), g = meta({2, 8}), sum = meta({2, 8}), end = meta({2, 8});
  const FusedOperation make_h = operation(OpKind::other, {x}, h), make_g = operation(OpKind::other, {h}, g),
                       add = operation(OpKind::linear, {g, meta({8, 8})}, sum, h),
                       finish = operation(OpKind::other, {sum}, end);
  const BufferPlan plan({make_h, make_g, add, finish}, {x}, {end});
  EXPECT_EQ(plan.offset_of(sum), plan.offset_of(h));
  EXPECT_EQ(plan.number_of(sum), plan.number_of(h));
  EXPECT_NE(plan.offset_of(end), plan.offset_of(h)) << "the sum lives on in the memory of h";
  EXPECT_EQ(plan.bytes(), 128u);

  const BufferPlan read_later({make_h, make_g, add, operation(OpKind::other, {sum, h}, end)}, {x}, {end});
  EXPECT_NE(read_later.offset_of(sum), read_later.offset_of(h));
  EXPECT_EQ(read_later.number_of(sum), 2);
  const BufferPlan multiplied({make_h, operation(OpKind::linear, {h, meta({8, 8})}, sum, h), finish}, {x}, {end});
  EXPECT_NE(multiplied.offset_of(sum), multiplied.offset_of(h)) << "the layer reads h while it writes";
  const Tensor large = meta({4, 8}), part = meta({1, 8}), part_sum = meta({1, 8});
  const BufferPlan smaller({operation(OpKind::other, {x}, large), operation(OpKind::other, {x}, part),
                            operation(OpKind::linear, {part, meta({8, 8})}, part_sum, large.narrow(0, 3, 1))},
                           {x}, {part_sum});
  EXPECT_EQ(smaller.number_of(part_sum), 2) << "not in the memory of a larger buffer";
  const BufferPlan of_input({make_h, operation(OpKind::linear, {h, meta({8, 8})}, sum, x)}, {x}, {sum});
  EXPECT_EQ(of_input.number_of(sum), 1) << "an input is not written to";
}

TEST(BufferPlan, ARotationIsDoneInPlaceUnlessItsInputIsReadAgain) {
  const Tensor x = meta({2, 8}), qkv = meta({2, 8}), rotated = meta({2, 8}), other = meta({2, 8});
  const FusedOperation make = operation(OpKind::other, {x}, qkv),
                       rotate{recorded({.in_place = true}, {qkv}, {rotated}), {}, {}};
  const BufferPlan in_place({make, rotate}, {x}, {rotated});
  EXPECT_EQ(in_place.offset_of(rotated), in_place.offset_of(qkv));
  EXPECT_EQ(in_place.bytes(), 64u);
  const BufferPlan kept({make, rotate, operation(OpKind::other, {qkv}, other)}, {x}, {rotated, other});
  EXPECT_NE(kept.offset_of(rotated), kept.offset_of(qkv));
  const BufferPlan of_input({{recorded({.in_place = true}, {x}, {rotated}), {}, {}}}, {x}, {rotated});
  EXPECT_EQ(of_input.bytes(), 64u) << "an input is not written to";
}

// Chains of residuals: all of them in the memory of the first.
TEST(BufferPlan, ResidualsOfResidualsShareTheFirstBuffer) {
  const Tensor x = meta({4, 8}), h = meta({4, 8}), g1 = meta({4, 8}), s1 = meta({4, 8}), g2 = meta({4, 8}),
               s2 = meta({4, 8});
  const BufferPlan plan({operation(OpKind::other, {x}, h), operation(OpKind::other, {h}, g1),
                         operation(OpKind::linear, {g1, meta({8, 8})}, s1, h), operation(OpKind::other, {s1}, g2),
                         operation(OpKind::linear, {g2, meta({8, 8})}, s2, s1)},
                        {x}, {s2});
  EXPECT_EQ(plan.number_of(s2), 0);
  EXPECT_EQ(plan.number_of(s1), 0);
  EXPECT_EQ(plan.offset_of(s2), plan.offset_of(h));
  EXPECT_EQ(plan.bytes(), 256u) << "g1 and g2 share the rest";
}

}  // namespace
}  // namespace vitrail::infer
