// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/gemm_tiles_internal.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

using Tiles = std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>>;

Tiles tiles_of(int64_t m, int64_t n, int64_t k) {
  std::mutex mutex;
  Tiles tiles;
  for_each_tile(m, n, k, [&](const Tile& t) {
    const std::lock_guard lock(mutex);
    tiles.insert({t.row, t.rows, t.column, t.columns});
  });
  return tiles;
}

TEST(GemmTiles, CoverEachElementOnceAndAreTheSameInEveryCall) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 1000}, {1000, 3}, {197, 576}, {3152, 192}}) {
      std::vector<int> visits(static_cast<size_t>(m * n));
      const Tiles tiles = tiles_of(m, n, 1 << 16);
      for (const auto& [row, rows, column, columns] : tiles) {
        for (int64_t r = row; r < row + rows; ++r) {
          for (int64_t c = column; c < column + columns; ++c) ++visits[r * n + c];
        }
      }
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << m << " × " << n << " on " << threads;
      EXPECT_EQ(tiles_of(m, n, 1 << 16), tiles);
    }
  }
}

TEST(GemmTiles, SmallMatricesAndLoopsHaveOneTile) {
  const ThreadCount count(4);
  EXPECT_EQ(tiles_of(16, 16, 16).size(), 1u);
  EXPECT_EQ(tiles_of(512, 512, 512).size(), 8u);
  parallel_for(0, 4, 1, [](int64_t, int64_t) { EXPECT_EQ(tiles_of(512, 512, 512).size(), 1u); });
}

// All operands with rows that are longer than the matrix, in every orientation, on several threads.
TEST(GemmTiles, GemmOnSeveralThreadsMatchesOneThread) {
  constexpr int64_t kM = 150, kN = 200, kK = 90, kLd = 333;
  // Two sums over kK pairs of normal values, whose magnitudes add to less than 150.
  constexpr double kTolerance = std::numeric_limits<float>::epsilon() * (kK + 2) * 150;
  const std::vector<float> a = testing::random_floats(kLd * kLd, 1), b = testing::random_floats(kLd * kLd, 2);
  const auto result_of = [&](int threads, bool transpose_a, bool transpose_b) {
    const ThreadCount count(threads);
    std::vector<float> c(kM * kLd, 0.5f);
    gemm(transpose_a, transpose_b, kM, kN, kK, a.data(), kLd, b.data(), kLd, true, c.data(), kLd);
    return c;
  };
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const std::vector<float> one = result_of(1, transpose_a, transpose_b);
      for (const int threads : {2, 3, 5}) {
        const std::vector<float> many = result_of(threads, transpose_a, transpose_b);
        for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(many[i], one[i], kTolerance) << i << " on " << threads;
      }
    }
  }
}

// Several panels of columns and blocks of rows, a result whose rows are longer than the matrix, a residual that is the
// result itself, and a bias.
TEST(OneDnnGemm, TilesOfALargeLayerMatchOurOwnKernels) {
  constexpr int64_t kRows = 150, kIn = 1024, kOut = 1100, kLd = 1200;
  const testing::Problem problem(kRows, kIn, kOut);
  testing::for_each_isa([&](Isa isa) {
    if (isa != available_isas().back() || isa == Isa::scalar) return;
    const PackedLinear packed(problem.weight.data(), problem.bias.data(), kOut, kIn);
    const auto own = make_fp32_gemm(problem.weight.data(), problem.bias.data(), kOut, kIn);
    const std::vector<float> before = testing::random_floats(kRows * kLd, 3);
    for (const int threads : {1, 3}) {
      const ThreadCount count(threads);
      std::vector<float> y = before, expected = before;
      const Epilogue to_y{Activation::gelu, {y.data(), kLd, problem.weight.data()}};
      const Epilogue to_expected{Activation::gelu, {expected.data(), kLd, problem.weight.data()}};
      packed.run({problem.x.data(), kIn}, {y.data(), kLd}, {.count = kRows}, to_y, nullptr);
      own->run({{problem.x.data(), kIn}, {expected.data(), kLd}, {.count = kRows}, to_expected, nullptr});
      for (int64_t i = 0; i < kRows * kLd; ++i) {
        const int64_t row = i / kLd, column = i % kLd;
        if (y[i] == expected[i]) continue;
        ASSERT_LT(column, kOut) << "between the rows";
        // GELU's slope is below 1.13, and the scale multiplies the error.
        const double tolerance = 2 * 1.13 * problem.tolerance(row * kOut + column) * std::abs(problem.weight[column]);
        ASSERT_NEAR(y[i], expected[i], tolerance + 1e-6) << i;
      }
    }
  });
}

// Tiles are pairs of blocks of 8 rows and 48 columns, divided so that a tile packs the fewest rows and columns.
TEST(GemmTiles, HaveEdgesAtRegisterTilesAndTheFewestPackedBlocks) {
  const ThreadCount two(2);
  const int64_t k = 1 << 16;
  EXPECT_EQ(tiles_of(100, 100, k), (Tiles{{0, 48, 0, 48}, {0, 48, 48, 52}, {48, 52, 0, 48}, {48, 52, 48, 52}}));
  EXPECT_EQ(tiles_of(5, 1000, k), (Tiles{{0, 5, 0, 240}, {0, 5, 240, 240}, {0, 5, 480, 240}, {0, 5, 720, 280}}));
  EXPECT_EQ(tiles_of(100, 3, k), (Tiles{{0, 24, 0, 3}, {24, 24, 0, 3}, {48, 24, 0, 3}, {72, 28, 0, 3}}));
}

// A tile has at least a million operations.
TEST(GemmTiles, AreHalvedUntilEachHasEnoughToDo) {
  const ThreadCount two(2);
  EXPECT_EQ(tiles_of(100, 100, 200).size(), 4u) << "4,000,000 operations";
  EXPECT_EQ(tiles_of(100, 100, 199).size(), 2u);
  EXPECT_EQ(tiles_of(100, 100, 100).size(), 2u) << "2,000,000 operations";
  EXPECT_EQ(tiles_of(100, 100, 99).size(), 1u);
}

}  // namespace
}  // namespace vitrail::kernels
