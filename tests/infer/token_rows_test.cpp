// SPDX-License-Identifier: Apache-2.0
// Which tensors of a recorded pass have the tokens of a marked one in their rows.
#include "vitrail/infer/token_rows_internal.h"

#include <gtest/gtest.h>

#include "tests/infer/meta.h"

namespace vitrail::infer {
namespace {

// An operation of one input and one result.
void record(const Tensor& x, const Tensor& y, bool keeps_token_order = true) {
  ops::record(recorded({.keeps_token_order = keeps_token_order}, {x}, {y}));
}

TEST(TokenRows, AreKeptByOperationsThatComputeRowByRow) {
  for (const bool kept : {false, true}) {
    for (const Shape& shape : {Shape{2, 5, 6}, Shape{2, 6}}) {
      const ops::Recorder recorder;
      const Tensor tokens = meta({2, 5, 4}), result = meta(shape);
      ops::annotate_tokens(tokens, {.class_token = true, .head_tokens = 2});
      record(tokens, result, kept);
      EXPECT_EQ(TokenRows(recorder).of(result).has_value(), kept && shape.rank() == 3) << shape;
    }
  }
}

TEST(TokenRows, HaveTheNumberAndTheRolesOfTheirTokens) {
  const ops::Recorder recorder;
  const Tensor tokens = meta({2, 5, 4}), a = meta({2, 5, 6}), merged = meta({2, 3, 6}), last = meta({2, 3, 1});
  ops::annotate_tokens(tokens, {.class_token = true, .head_tokens = 2});
  record(tokens, a);
  record(a, merged);
  record(merged, last);
  const TokenRows rows(recorder);
  for (const auto& [tensor, count] : {std::pair{tokens, 5}, {a, 5}, {merged, 3}, {last, 3}}) {
    const auto found = rows.of(tensor);
    ASSERT_TRUE(found.has_value()) << count;
    EXPECT_EQ(found->tokens, count);
    EXPECT_TRUE(found->roles.class_token);
    EXPECT_EQ(found->roles.head_tokens, 2);
  }
  EXPECT_FALSE(rows.of(meta({2, 5, 4})).has_value()) << "another tensor";
  EXPECT_FALSE(rows.of(tokens.view({10, 4})).has_value()) << "not [B, N, C]";
  EXPECT_EQ(rows.of(tokens.narrow(1, 0, 2))->tokens, 2);
}

// Heads [B, H, N, d] are views of any part of a projection; a narrower view must begin with the first token.
TEST(TokenRows, OfAViewBeginWithTheFirstToken) {
  const auto kept = [](const auto& view, const Shape& result_shape) {
    const ops::Recorder recorder;
    const Tensor tokens = meta({2, 5, 12}), result = meta(result_shape);
    ops::annotate_tokens(tokens, {.class_token = true, .head_tokens = 1});
    record(view(tokens), result);
    return TokenRows(recorder).of(result).has_value();
  };
  EXPECT_TRUE(kept([](const Tensor& t) { return t.narrow(1, 0, 2); }, {2, 2, 12}));
  EXPECT_FALSE(kept([](const Tensor& t) { return t.narrow(1, 1, 2); }, {2, 2, 12}));
  EXPECT_TRUE(kept([](const Tensor& t) { return t.view({2, 5, 3, 4}).permute({0, 2, 1, 3}); }, {2, 5, 12}));
  EXPECT_TRUE(kept(
      [](const Tensor& t) {
        return t.narrow(2, 4, 4).view({2, 5, 2, 2}).permute({0, 2, 1, 3});
      },
      {2, 5, 4}));
  EXPECT_FALSE(kept([](const Tensor& t) { return t.view({10, 12}); }, {2, 5, 12})) << "rank 2";
}

}  // namespace
}  // namespace vitrail::infer
