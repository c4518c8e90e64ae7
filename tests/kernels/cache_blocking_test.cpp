// SPDX-License-Identifier: Apache-2.0
// How the GEMMs divide their output, and what they prefetch.
#include "vitrail/kernels/gemm/cache_blocking_internal.h"
#include "vitrail/kernels/gemm/register_tile_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace vitrail::kernels {
namespace {

TEST(CacheBlocking, BlocksOfRowsAreEvenAndCompleteRegisterTiles) {
  EXPECT_EQ(block_rows(1), 6);
  EXPECT_EQ(block_rows(192), 192);
  EXPECT_EQ(block_rows(197), 102);  // two blocks
  EXPECT_EQ(block_rows(197, kAmxRows.max, kAmxRows.tile), 224);
  EXPECT_EQ(block_rows(257, kAmxRows.max, kAmxRows.tile), 160);
  EXPECT_EQ(block_rows(1576, kAmxRows.max, kAmxRows.tile), 256);
}

// Goes through the parts of two output blocks in the order of the GEMMs.  A part prefetches the one that follows it.
TEST(CacheBlocking, EachPartPrefetchesTheNextOne) {
  constexpr int64_t kWidth = 32, kDepth = 10, kColumns = 96;
  std::vector<int32_t> weight(2 * kColumns * kDepth);
  std::vector<NextPanel> parts, prefetched;
  for (const int32_t* block : {weight.data(), weight.data() + kColumns * kDepth}) {
    const BlockPanels panels{block, kColumns, kDepth, kWidth};
    for (const int64_t first : {0, 5}) {
      for (int64_t column = 0; column < kColumns; column += kWidth) {
        parts.push_back({block + column * kDepth + first * kWidth, 5 * kWidth * 4});
        prefetched.push_back(panels.after(column, first, first + 5));
      }
    }
  }
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    EXPECT_EQ(prefetched[i].data, parts[i + 1].data) << i;
    EXPECT_EQ(prefetched[i].bytes, parts[i + 1].bytes) << i;
  }
}

TEST(CacheBlocking, AnOutputBlockHasThePartOfTheEpilogueOfItsRowsAndColumns) {
  std::vector<float> y(100), residual(200), scale(10);
  GemmArgs args;
  args.y = {y.data(), 10};
  args.epilogue = {Activation::silu, {residual.data(), 20, scale.data()}};
  const OutputBlock block = output_block(args, 3, 4, 5, 2);
  EXPECT_EQ(block.rows, 4);
  EXPECT_EQ(block.columns, 2);
  EXPECT_EQ(block.y.data, y.data() + 3 * 10 + 5);
  EXPECT_EQ(block.y.ld, 10);
  EXPECT_EQ(block.epilogue.activation, Activation::silu);
  EXPECT_EQ(block.epilogue.residual.data, residual.data() + 3 * 20 + 5);
  EXPECT_EQ(block.epilogue.residual.ld, 20);
  EXPECT_EQ(block.epilogue.residual.scale, scale.data() + 5);
  args.epilogue = {};
  const OutputBlock plain = output_block(args, 3, 4, 5, 2);
  EXPECT_EQ(plain.epilogue.residual.data, nullptr);
  EXPECT_EQ(plain.epilogue.residual.scale, nullptr);
}

// On one thread the blocks follow each other by rows, then by groups of panels of at most 128 columns.
TEST(CacheBlocking, OutputBlocksAreOrderedByRowsAndThenByPanels) {
  const ThreadCount one(1);
  struct Block {
    int64_t row, rows, panel, panels;
    bool operator==(const Block&) const = default;
  };
  std::vector<Block> blocks;
  const auto add = [&](int64_t row, int64_t rows, int64_t panel, int64_t panels) {
    blocks.push_back({row, rows, panel, panels});
  };
  for_each_output_block({.rows = 10, .block_rows = 6, .panels = 5, .panel_columns = 64}, 1, add);
  EXPECT_EQ(blocks,
            (std::vector<Block>{{0, 6, 0, 2}, {0, 6, 2, 2}, {0, 6, 4, 1}, {6, 4, 0, 2}, {6, 4, 2, 2}, {6, 4, 4, 1}}));
  blocks.clear();
  for_each_output_block({.rows = 6, .block_rows = 6, .panels = 9, .panel_columns = 16}, 1, add);
  EXPECT_EQ(blocks, (std::vector<Block>{{0, 6, 0, 8}, {0, 6, 8, 1}}));
}

TEST(CacheBlocking, OutputBlocksCoverEachPanelOfEachRowOnceOnAnyThreads) {
  for (const int threads : {1, 2, 3}) {
    const ThreadCount count(threads);
    const BlockGrid grid{.rows = 401, .block_rows = 102, .panels = 13, .panel_columns = 32};
    std::vector<std::atomic<int>> visits(401 * 13);
    for_each_output_block(grid, 2, [&](int64_t row, int64_t rows, int64_t panel, int64_t panels) {
      EXPECT_LE(panels * 32, kMaxBlockColumns);
      for (int64_t r = row; r < row + rows; ++r) {
        for (int64_t p = panel; p < panel + panels; ++p) ++visits[static_cast<size_t>(r * 13 + p)];
      }
    });
    for (size_t i = 0; i < visits.size(); ++i) ASSERT_EQ(visits[i], 1) << i << " on " << threads;
  }
}

TEST(CacheBlocking, TheLargestBlockHoldsThatOfEveryMicrokernel) {
  EXPECT_EQ(kLargestBlockRows, 256);
  EXPECT_EQ(kAmxRows.tile, 32);
  EXPECT_EQ(kAmxRows.few, 64);
  EXPECT_EQ(kAmxRows.alignment, 16);
  EXPECT_EQ(RowBlocking{}.max, 192);
  EXPECT_EQ(RowBlocking{}.few, 48);
  EXPECT_EQ(RowBlocking{}.tile, 6);
  EXPECT_EQ(RowBlocking{}.alignment, 1);
  EXPECT_EQ(kMaxBlockColumns, 128);
  EXPECT_EQ(kAvx512Columns, 32);
  EXPECT_EQ(kNeonMatrixPanel.columns, 8);
  EXPECT_EQ(kNeonMatrixPanel.interleaved_groups, 2);
  EXPECT_EQ(PanelLayout{7}.interleaved_groups, 1);
}

// Tiles of `rows` rows, each complete but the last.
TEST(RegisterTiles, CoverTheRowsInOrder) {
  for (int64_t rows = 0; rows <= 20; ++rows) {
    std::vector<std::pair<int64_t, size_t>> tiles, want;
    for_each_register_tile<6>(
        rows, [&]<size_t... row>(std::index_sequence<row...>, int64_t first) {
          tiles.emplace_back(first, sizeof...(row));
        });
    for (int64_t first = 0; first < rows; first += 6) want.emplace_back(first, std::min<int64_t>(6, rows - first));
    EXPECT_EQ(tiles, want) << rows;
  }
}

TEST(RegisterTiles, RowPointersLoadEachRowAlongK) {
  std::vector<int32_t> rows(12 * 10);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
  RowPointers<12> pointers(rows.data(), 10 * sizeof(int32_t));
  for (int32_t k = 0; k < 5; ++k, pointers.advance(sizeof(int32_t))) {
    for (size_t row = 0; row < 12; ++row) EXPECT_EQ(pointers.load<int32_t>(row), static_cast<int32_t>(10 * row) + k);
  }
}

}  // namespace
}  // namespace vitrail::kernels
