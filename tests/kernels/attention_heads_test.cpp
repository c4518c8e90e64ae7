// SPDX-License-Identifier: Apache-2.0
// How attention divides its work: the operands of a head, tasks, blocks, and which thread packs what.
#include "vitrail/kernels/attention/attention_heads_internal.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>
#include <vector>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/kernels/attention/relative_positions_internal.h"

namespace vitrail::kernels {
namespace {

// Pair 5 of 3 heads: sample 1, head 2.
TEST(AttentionHead, HasTheOperandsOfItsSampleAndHead) {
  std::vector<float> memory(4000);
  float* const m = memory.data();
  const RelativePositions positions{3, 4, m + 1, m + 2};
  AttentionArgs args{.batch = 2,
                     .heads = 3,
                     .queries = 7,
                     .keys = 11,
                     .head_dim = 13,
                     .q = {m + 10, 100, 20, 1},
                     .k = {m + 20, 200, 30, 2},
                     .v = {m + 30, 300, 40, 3},
                     .out = {m + 40, 400, 50, 4},
                     .scale = 0.25f,
                     .bias = {m + 50, 500, 60, 5},
                     .positions = positions,
                     .weights = m + 60};
  const Head<float> head = head_of(args, 5);
  EXPECT_EQ(head.q, m + 10 + 100 + 40);
  EXPECT_EQ(head.k, m + 20 + 200 + 60);
  EXPECT_EQ(head.v, m + 30 + 300 + 80);
  EXPECT_EQ(head.out, m + 40 + 400 + 100);
  EXPECT_EQ(head.bias, m + 50 + 500 + 120);
  EXPECT_EQ(head.weights, m + 60 + 5 * 77);
  EXPECT_EQ((std::vector{head.q_stride, head.k_stride, head.v_stride, head.out_stride, head.bias_stride}),
            (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ((std::vector{head.queries, head.keys, head.head_dim}), (std::vector<int64_t>{7, 11, 13}));
  EXPECT_EQ(head.scale, 0.25f);
  EXPECT_EQ(head.positions.height, 3);
  EXPECT_EQ(head.positions.width, 4);
  EXPECT_EQ(head.positions.rows, m + 1);
  EXPECT_EQ(head.positions.columns, m + 2);
  args.bias = {};
  args.weights = nullptr;
  EXPECT_EQ(head_of(args, 5).bias, nullptr);
  EXPECT_EQ(head_of(args, 5).weights, nullptr);

  const AttentionGradArgs grads{.forward = args,
                                .grad = {m + 70, 600, 70, 6},
                                .grad_q = {m + 80, 700, 80, 7},
                                .grad_k = {m + 90, 800, 90, 8},
                                .grad_v = {m + 100, 900, 100, 9},
                                .grad_scores = m + 110};
  const HeadGrad<float> grad = head_of(grads, 5);
  EXPECT_EQ(grad.q, head.q);
  EXPECT_EQ(grad.grad, m + 70 + 600 + 140);
  EXPECT_EQ(grad.grad_q, m + 80 + 700 + 160);
  EXPECT_EQ(grad.grad_k, m + 90 + 800 + 180);
  EXPECT_EQ(grad.grad_v, m + 100 + 900 + 200);
  EXPECT_EQ(grad.grad_scores, m + 110 + 5 * 77);
  EXPECT_EQ((std::vector{grad.grad_stride, grad.grad_q_stride, grad.grad_k_stride, grad.grad_v_stride}),
            (std::vector<int64_t>{6, 7, 8, 9}));
  EXPECT_EQ(head_of(AttentionGradArgs{.forward = args}, 5).grad_scores, nullptr);
}

struct RecordedWork {
  mutable std::vector<int64_t> packed;  // the first element of q tells the head
  mutable std::vector<std::tuple<int64_t, int64_t, int64_t>> attended;
  void pack(const Head<float>& head) const { packed.push_back(static_cast<int64_t>(*head.q)); }
  void attend(const Head<float>& head, int64_t first, int64_t queries) const {
    attended.emplace_back(static_cast<int64_t>(*head.q), first, queries);
  }
};

// 14 queries are tasks of 6, 6 and 2; a block has up to two of them.
TEST(AttentionBlocks, PackEachHeadOnceAndTakeItsTilesInOrder) {
  const std::vector<float> q{0, 1, 2};
  const AttentionArgs args{.batch = 1, .heads = 3, .queries = 14, .keys = 1, .head_dim = 1, .q = {q.data(), 3, 1, 0}};
  const uint64_t call = ++attention_calls;
  const RecordedWork work;
  using Blocks = std::vector<std::tuple<int64_t, int64_t, int64_t>>;
  attend_by_blocks(args, call, 6, 12, work, 1, 5);
  EXPECT_EQ(work.attended, (Blocks{{0, 6, 8}, {1, 0, 12}}));
  EXPECT_EQ(work.packed, (std::vector<int64_t>{0, 1}));
  attend_by_blocks(args, call, 6, 12, work, 5, 9);  // goes on in the head that is packed
  EXPECT_EQ(work.attended, (Blocks{{0, 6, 8}, {1, 0, 12}, {1, 12, 2}, {2, 0, 12}, {2, 12, 2}}));
  EXPECT_EQ(work.packed, (std::vector<int64_t>{0, 1, 2}));
  attend_by_blocks(args, ++attention_calls, 6, 6, work, 8, 9);  // another call has other keys
  EXPECT_EQ(work.attended.back(), std::make_tuple(2, 12, 2));
  EXPECT_EQ(work.packed, (std::vector<int64_t>{0, 1, 2, 2}));
}

TEST(AttentionTasks, AreTheTilesOfAllHeads) {
  const ThreadCount one(1);
  const AttentionArgs args{.batch = 2, .heads = 3, .queries = 14, .keys = 5, .head_dim = 4};
  std::vector<int> visits(2 * 3 * 3);
  std::vector<uint64_t> calls;
  for (int i = 0; i < 2; ++i) {
    for_each_attention_task(args, 6, 1000, [&](uint64_t call, int64_t first, int64_t last) {
      calls.push_back(call);
      for (int64_t task = first; task < last; ++task) ++visits[static_cast<size_t>(task)];
    });
  }
  EXPECT_EQ(visits, std::vector<int>(18, 2));
  EXPECT_GT(calls.back(), calls.front()) << "each call has its number";
}

// Scores of 160 KiB at most, in complete tiles of 12 queries.
TEST(AttentionGradients, TakeBlocksOfQueriesWhoseScoresFitTheCache) {
  EXPECT_EQ(gradient_block(5, 64), 5);
  EXPECT_EQ(gradient_block(100, 64), 100);
  EXPECT_EQ(gradient_block(10'000, 64), 636);
  EXPECT_EQ(gradient_block(100, 1000), 36);
  EXPECT_EQ(gradient_block(100, 3414), 12);
  EXPECT_EQ(gradient_block(100, 40'960), 12);
}

TEST(AttentionGradients, EachHeadIsComputedOnceWithTheScratchOfItsThread) {
  const ThreadCount one(1);
  const std::vector<float> q{0, 1, 2, 3, 4, 5};
  const AttentionGradArgs args{
      .forward = {.batch = 2, .heads = 3, .queries = 1, .keys = 1, .head_dim = 1, .q = {q.data(), 3, 1, 0}}};
  static std::vector<int> seen;  // the function has no closure
  seen.clear();
  int made = 0;
  for_each_head_gradient<float, int>(
      args,
      [](const HeadGrad<float>& head, const int& scratch) { seen.push_back(static_cast<int>(*head.q) + scratch); },
      [&] { return 10 * ++made; });
  EXPECT_EQ(seen, (std::vector<int>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(made, 1);
}

TEST(RelativeScratch, HasRoomForBothTablesAndTheirScores) {
  const RelativePositions positions{5, 9, reinterpret_cast<const float*>(1), nullptr};
  RelativeScratch scratch(positions, 16);  // 9 and 17 rows
  EXPECT_EQ(scratch.ld_rows, 16);
  EXPECT_EQ(scratch.ld_columns, 32);
  EXPECT_EQ(scratch.table_floats(10), 480);
  EXPECT_EQ(scratch.score_floats(7), 336);
  std::vector<float> tables(480), scores(336);
  scratch.place(tables.data(), scores.data(), 10, 7);
  EXPECT_EQ(scratch.rows, tables.data());
  EXPECT_EQ(scratch.columns, tables.data() + 160);
  EXPECT_EQ(scratch.row_scores, scores.data());
  EXPECT_EQ(scratch.column_scores, scores.data() + 112);
  const RelativeScratch none({5, 9, nullptr, nullptr}, 16);
  EXPECT_EQ(none.table_floats(10), 0);
  EXPECT_EQ(none.score_floats(7), 0);
}

#if defined(__x86_64__)
TEST(AttentionMicrokernels, HaveTheTilesOfTheirInstructions) {
  const AttentionMicrokernels amx = attention_microkernels(features_of(Isa::avx512_amx)),
                              without = attention_microkernels(features_of(Isa::avx512_bf16));
  EXPECT_EQ(amx.tile_rows, 32);
  EXPECT_EQ(amx.tile_groups, 16);
  EXPECT_EQ(without.tile_rows, 12);
  EXPECT_EQ(without.tile_groups, 1);
  EXPECT_EQ(without.scores_of_bf16, bf16_microkernel());
}
#endif

TEST(Attention, OfBf16NeedsAvx512Bf16) {
  testing::for_each_isa([](Isa isa) {
    EXPECT_EQ(attention_multiplies_bf16(), features_of(isa).has(Feature::avx512_bf16));
    if (attention_multiplies_bf16()) return;
    const auto message = [](auto&& call) -> std::string {
      try {
        call();
        return "none";
      } catch (const std::logic_error& error) {
        return error.what();
      }
    };
    const std::string want = "attention of bf16 needs AVX-512 BF16";
    EXPECT_EQ(message([] { attention(AttentionArgsOf<BFloat16>{}); }), want);
    EXPECT_EQ(message([] { attention_backward(AttentionGradArgsOf<BFloat16>{}); }), want);
  });
}

}  // namespace
}  // namespace vitrail::kernels
