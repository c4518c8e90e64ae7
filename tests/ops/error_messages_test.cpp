// SPDX-License-Identifier: Apache-2.0
// Errors of operations: each names its operation, and says which dtype or shapes it needs.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/messages.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mask_loss.h"
#include "vitrail/ops/max_pool.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;
using testing::error_of;

// Each operation names itself where its input has no floating dtype.
TEST(Operations, RefuseIntegersByTheirNames) {
  const auto i = [](const Shape& shape) { return Tensor::zeros(shape, DType::i64); };
  const auto f = [](const Shape& shape) { return Tensor::zeros(shape); };
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"activation", [&] { activation(i({2}), Activation::gelu); }},
      {"silu_gate",
       [&] {
         silu_gate(i({2, 4}));
       }},
      {"attention",
       [&] {
         attention(i({1, 1, 2, 2}), i({1, 1, 2, 2}), i({1, 1, 2, 2}), 1);
       }},
      {"add", [&] { add(i({2}), i({2})); }},
      {"mul", [&] { mul(i({2}), i({2})); }},
      {"layer_norm",
       [&] {
         layer_norm(i({2, 4}), {}, {}, 1e-6);
       }},
      {"rms_norm",
       [&] {
         rms_norm(i({2, 4}), {}, 1e-6);
       }},
      {"linear",
       [&] {
         linear(i({2, 4}), f({3, 4}), {});
       }},
      {"matmul",
       [&] {
         matmul(i({2, 4}), i({4, 3}));
       }},
      {"residual_add",
       [&] {
         residual_add(i({2, 4}), i({2, 4}));
       }},
      {"rotary",
       [&] {
         rotary(i({1, 2, 12}), f({1, 1, 2, 4}), 1, RotaryPairs::halves);
       }},
      {"rotary_table",
       [&] {
         rotary_table(i({2, 4}));
       }},
      {"softmax",
       [&] {
         softmax(i({2, 4}));
       }},
      {"mean",
       [&] {
         mean(i({2, 4}), 0);
       }},
      {"unfold_3x3",
       [&] {
         unfold_3x3(i({1, 2, 2, 1}));
       }},
      {"unfold_3x3_rows",
       [&] {
         unfold_3x3_rows(i({1, 2, 2, 1}), 1, 0, 1);
       }},
      {"depthwise_conv_3x3",
       [&] {
         depthwise_conv_3x3(i({1, 2, 2, 1}), f({1, 3, 3}), f({1}));
       }},
      {"pixel_shuffle",
       [&] {
         pixel_shuffle(i({1, 2, 2, 4}), 2);
       }},
      {"resize_bilinear",
       [&] {
         resize_bilinear(i({2, 2}), 3, 3);
       }},
      {"resize_map",
       [&] {
         resize_map(i({1, 2, 2, 1}), 3, 3);
       }},
      {"window_partition",
       [&] {
         window_partition(i({1, 2, 2, 1}), 2);
       }},
      {"window_unpartition",
       [&] {
         window_unpartition(i({1, 4, 1}), 2, 2, 2);
       }},
      {"relative_self_attention",
       [&] {
         relative_self_attention(i({1, 2, 12}), 1, 1, f({1, 4}), f({3, 4}), {1, 2});
       }},
      {"cross_entropy",
       [&] {
         cross_entropy(i({2, 3}), i({2}));
       }},
      {"bce_with_logits",
       [&] {
         bce_with_logits(i({2, 3}), i({2}));
       }},
      {"distillation",
       [&] {
         distillation(i({2, 3}), i({2, 3}));
       }},
      {"weighted_sum", [&] { weighted_sum({i({})}, {1}); }},
      {"focal_loss",
       [&] {
         focal_loss(i({1, 1, 2}), f({1, 2}));
       }},
      {"dice_loss", [&] {
         dice_loss(i({1, 1, 2}), f({1, 2}));
       }}};
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(error_of([&, &action = call] { action(); }), str(name, ": expected a floating tensor, got i64"));
  }
}

TEST(Operations, ErrorsSayWhatShapesTheyNeed) {
  const auto f = [](const Shape& shape) { return Tensor::zeros(shape); };
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"silu_gate: expected an even last extent, got [2, 3]",
       [&] {
         silu_gate(f({2, 3}));
       }},
      {"layer_norm: expected x [..., C], got a scalar", [&] { layer_norm(f({}), {}, {}, 1e-6); }},
      {"layer_norm: expected parameters of shape [4] for x [2, 4], got [5]",
       [&] {
         layer_norm(f({2, 4}), {}, f({5}), 1e-6);
       }},
      {"rms_norm: expected x [..., C], got a scalar", [&] { rms_norm(f({}), {}, 1e-6); }},
      {"rms_norm: expected gamma [4] for x [2, 4], got [5]",
       [&] {
         rms_norm(f({2, 4}), f({5}), 1e-6);
       }},
      {"linear: expected a weight [out, in], got shape [3]",
       [&] {
         linear(f({2, 3}), f({3}), {});
       }},
      {"linear: expected a bias [4], got shape [3]",
       [&] {
         linear(f({2, 3}), f({4, 3}), f({3}));
       }},
      {"matmul: expected [..., m, k] and [..., k, n], got [2, 3] and [2, 3]",
       [&] {
         matmul(f({2, 3}), f({2, 3}));
       }},
      {"patchify: expected a patch of at least 1×1, got 0×4",
       [&] {
         patchify(f({1, 3, 8, 8}), 0, 4);
       }},
      {"patchify: expected an image [B, C, H, W] of at least 4×9, got [1, 3, 8, 8]",
       [&] {
         patchify(f({1, 3, 8, 8}), 4, 9);
       }},
      {"rotary: expected qkv [B, N, 3·5·d], got [2, 3, 24]",
       [&] {
         rotary(f({2, 3, 24}), f({1, 1, 3, 4}), 5, RotaryPairs::halves);
       }},
      {"rotary: expected a table [B or 1, H or 1, P, d] of an even d, for qkv [2, 3, 24] of 2 heads, got [1, 1, 4, 4]",
       [&] {
         rotary(f({2, 3, 24}), f({1, 1, 4, 4}), 2, RotaryPairs::halves);
       }},
      {"rotary_table: expected angles [..., d/2], got a scalar", [&] { rotary_table(f({})); }},
      {"cat: expected at least one tensor, got none", [&] { cat({}, 0); }},
      {"cat: expected an axis of [2, 3], got 2",
       [&] {
         cat({f({2, 3})}, 2);
       }},
      {"cat: expected shapes that agree but for axis 0, got [2, 3] and [2, 4]",
       [&] {
         cat({f({2, 3}), f({2, 4})}, 0);
       }},
      {"mean: expected an axis of [2, 3], got -3",
       [&] {
         mean(f({2, 3}), -3);
       }},
      {"gather_tokens: expected x [1, N, C], got [2, 3, 4]",
       [&] {
         gather_tokens(f({2, 3, 4}), {{0}});
       }},
      {"gather_tokens: expected 2 tokens of each sample, got 1",
       [&] {
         gather_tokens(f({2, 3, 4}), {{0, 1}, {0}});
       }},
      {"unfold_3x3: expected a map [B, h, w, C], got [2, 2, 1]",
       [&] {
         unfold_3x3(f({2, 2, 1}));
       }},
      {"unfold: expected a kernel above its padding that fits into the padded map, and a stride of 1 or more, got [1, "
       "2, "
       "2, 1], kernel 5, stride 1, padding 1",
       [&] {
         unfold(f({1, 2, 2, 1}), {5, 1, 1});
       }},
      {"unfold: expected a kernel above its padding that fits into the padded map, and a stride of 1 or more, got [1, "
       "2, "
       "2, 1], kernel 2, stride 1, padding 2",
       [&] {
         unfold(f({1, 2, 2, 1}), {2, 1, 2});
       }},
      {"max_pool_2x2: expected a map [B, h, w, C] of at least 2×2 cells, got [1, 1, 2, 1]",
       [&] {
         max_pool_2x2(f({1, 1, 2, 1}));
       }},
      {"unfold_3x3_rows: expected rows from 0 to 1, got 2 from 1",
       [&] {
         unfold_3x3_rows(f({1, 2, 2, 1}), 1, 1, 2);
       }},
      {"unfold_3x3: expected a stride of 1 or more, got 0",
       [&] {
         unfold_3x3(f({1, 2, 2, 1}), 0);
       }},
      {"depthwise_conv_3x3: expected a stride of 1 or more, got -1",
       [&] {
         depthwise_conv_3x3(f({1, 2, 2, 1}), f({1, 3, 3}), f({1}), -1);
       }},
      {"depthwise_conv_3x3: expected a weight [1, 3, 3] and a bias [1], got [2, 3, 3] and [3]",
       [&] {
         depthwise_conv_3x3(f({1, 2, 2, 1}), f({2, 3, 3}), f({3}));
       }},
      {"pixel_shuffle: expected a map [B, h, w, C], got [2, 2, 4]",
       [&] {
         pixel_shuffle(f({2, 2, 4}), 2);
       }},
      {"pixel_shuffle: expected a number of channels that 2² divides, got [1, 1, 1, 6]",
       [&] {
         pixel_shuffle(f({1, 1, 1, 6}), 2);
       }},
      {"resize_map: expected a map [B, h, w, C] and a target, all sizes at least 1, got [2, 3] to 4×5",
       [&] {
         resize_map(f({2, 3}), 4, 5);
       }},
      {"resize_bilinear: expected a map [..., h, w] and a target, all sizes at least 1, got [2, 3] to 0×5",
       [&] {
         resize_bilinear(f({2, 3}), 0, 5);
       }},
      {"window_partition: expected a map [B, h, w, C] and a window of at least 1, got [1, 2, 3, 2], 0",
       [&] {
         window_partition(f({1, 2, 3, 2}), 0);
       }},
      {"window_partition: expected a fill [2], got [3]",
       [&] {
         window_partition(f({1, 2, 3, 2}), 2, f({3}));
       }},
      {"window_unpartition: expected windows of 2×2 of a map of 2×3, got [3, 4, 1]",
       [&] {
         window_unpartition(f({3, 4, 1}), 2, 2, 3);
       }},
      {"relative_self_attention: expected qkv [B, 3·2, 3·2·d], got [1, 6, 16]",
       [&] {
         relative_self_attention(f({1, 6, 16}), 2, 1, f({5, 4}), f({3, 4}), {3, 2});
       }},
      {"relative_self_attention: expected tables [5, 4] and [3, 4], got [3, 4] and [5, 4]", [&] {
         relative_self_attention(f({1, 6, 12}), 1, 1, f({3, 4}), f({5, 4}), {3, 2});
       }}};
  for (const auto& [message, call] : calls) EXPECT_EQ(error_of([&, &action = call] { action(); }), message);
}

}  // namespace
}  // namespace vitrail::ops
