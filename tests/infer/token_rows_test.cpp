// SPDX-License-Identifier: Apache-2.0
// Which tensors of a recorded pass have the tokens of a marked one in their rows.
#include "vitrail/infer/token_rows_internal.h"

#include <gtest/gtest.h>

#include "tests/infer/meta.h"

namespace vitrail::infer {
namespace {

using ops::OpKind;

// Whether the result of an operation on marked tokens has them, too.
bool keeps(OpKind kind, const Tensor& result = meta({2, 5, 6}), const ops::OpAttributes& attributes = {}) {
  const ops::Recorder recorder;
  const Tensor tokens = meta({2, 5, 4});
  ops::annotate_tokens(tokens, {.class_token = true, .head_tokens = 2});
  ops::record(kind, {tokens}, {result}, attributes);
  return TokenRows(recorder).of(result).has_value();
}

TEST(TokenRows, AreKeptByOperationsThatComputeRowByRow) {
  for (const OpKind kind :
       {OpKind::linear, OpKind::layer_norm, OpKind::rms_norm, OpKind::residual_add, OpKind::attention, OpKind::rotary,
        OpKind::activation, OpKind::silu_gate, OpKind::add, OpKind::mul, OpKind::copy, OpKind::merge_tokens}) {
    EXPECT_TRUE(keeps(kind)) << name_of(kind);
  }
  for (const OpKind kind : {OpKind::patchify, OpKind::cat, OpKind::mean, OpKind::embedding}) {
    EXPECT_FALSE(keeps(kind)) << name_of(kind);
  }
  for (const bool kept : {false, true}) {
    const auto custom =
        std::make_shared<const ops::CustomOperation>(ops::CustomOperation{.name = "step", .keeps_token_order = kept});
    EXPECT_EQ(keeps(OpKind::custom, meta({2, 5, 6}), {.custom = custom}), kept);
  }
  EXPECT_FALSE(keeps(OpKind::linear, meta({2, 6}))) << "no tokens in its shape";
}

TEST(TokenRows, HaveTheNumberAndTheRolesOfTheirTokens) {
  const ops::Recorder recorder;
  const Tensor tokens = meta({2, 5, 4}), a = meta({2, 5, 6}), merged = meta({2, 3, 6}), last = meta({2, 3, 1});
  ops::annotate_tokens(tokens, {.class_token = true, .head_tokens = 2});
  ops::record(OpKind::linear, {tokens}, {a});
  ops::record(OpKind::merge_tokens, {a}, {merged});
  ops::record(OpKind::linear, {merged}, {last});
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
    ops::record(OpKind::attention, {view(tokens)}, {result});
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
