// SPDX-License-Identifier: Apache-2.0
// Operations on maps with channels last: windows, neighbourhoods, enlarging, resizing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/max_pool.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/window.h"

namespace vitrail::ops {
namespace {

Tensor counting(const Shape& shape) {
  Tensor x = Tensor::empty(shape);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i + 1);
  return x;
}

TEST(WindowPartition, FillsBelowAndRight) {
  const Tensor map = counting({1, 2, 3, 1}), fill = Tensor::full({1}, 9);
  const Tensor want = Tensor::from<float>({2, 4, 1}, {1, 2, 4, 5, 3, 9, 6, 9});
  EXPECT_TRUE(testing::close(window_partition(map, 2, fill), want, 0));
  EXPECT_TRUE(testing::close(window_unpartition(want, 2, 2, 3), map, 0));
  const Tensor zeros = Tensor::from<float>({2, 4, 1}, {1, 2, 4, 5, 3, 0, 6, 0});
  EXPECT_TRUE(testing::close(window_partition(map, 2), zeros, 0));
}

TEST(WindowPartition, RefusesOtherShapes) {
  EXPECT_NE(testing::error_of([] {
              window_partition(counting({2, 3, 1}), 2);
            }).find("[B, h, w, C]"),
            std::string::npos);
  EXPECT_NE(testing::error_of([] {
              window_partition(counting({1, 2, 3, 2}), 2, counting({3}));
            }).find("a fill [2]"),
            std::string::npos);
  testing::error_of([] { window_unpartition(counting({3, 4, 1}), 2, 2, 3); });
}

TEST(Unfold, GivesNeighboursWithZerosOutside) {
  const Tensor got = unfold_3x3(counting({1, 2, 2, 1})).select(0, 0).select(0, 0).select(0, 0);
  EXPECT_TRUE(testing::close(got, Tensor::from<float>({9}, {0, 0, 0, 0, 1, 2, 0, 3, 4}), 0));
}

TEST(Unfold, TakesAnyKernelThatFits) {
  const Tensor map = counting({2, 6, 5, 3});
  EXPECT_TRUE(testing::close(unfold(map, {3, 2, 1}), unfold_3x3(map, 2), 0));
  // The only 4×4 cells at every third place of 2×4 cells with a border of 0.
  const Tensor got = unfold(counting({1, 2, 4, 1}), {4, 3, 1});
  EXPECT_TRUE(
      testing::close(got, Tensor::from<float>({1, 1, 1, 16}, {0, 0, 0, 0, 0, 1, 2, 3, 0, 5, 6, 7, 0, 0, 0, 0}), 0));
}

TEST(MaxPool, IsTheLargestOfFourCellsInEachChannel) {
  const Tensor map = Tensor::from<float>({1, 3, 2, 2}, {1, -8, 2, -5, 4, -6, 3, -7, 99, 99, 99, 99});
  EXPECT_TRUE(testing::close(max_pool_2x2(map), Tensor::from<float>({1, 1, 1, 2}, {4, -5}), 0));
  const Tensor pair = counting({2, 2, 2, 1});  // images are apart
  EXPECT_TRUE(testing::close(max_pool_2x2(pair), Tensor::from<float>({2, 1, 1, 1}, {4, 8}), 0));
}

TEST(Unfold, SkipsCellsByItsStride) {
  for (const Shape& shape : {Shape{2, 4, 5, 3}, Shape{2, 5, 4, 3}}) {
    const Tensor map = counting(shape), all = unfold_3x3(map), strided = unfold_3x3(map, 2);
    ASSERT_EQ(strided.shape(), (Shape{2, (shape[1] + 1) / 2, (shape[2] + 1) / 2, 27}));
    for (int64_t y = 0; y < strided.size(1); ++y) {
      for (int64_t x = 0; x < strided.size(2); ++x) {
        EXPECT_TRUE(testing::close(strided.select(1, y).select(1, x), all.select(1, 2 * y).select(1, 2 * x), 0));
      }
    }
  }
  testing::error_of([] { unfold_3x3(counting({1, 2, 2, 1}), 0); });
}

TEST(Unfold3x3, GivesItsRowsInParts) {
  const Tensor map = Tensor::randn({2, 5, 4, 3}, 1);
  for (const int64_t stride : {1, 2}) {
    const Tensor all = unfold_3x3(map, stride);
    for (int64_t first = 0; first < all.size(1); ++first) {
      for (int64_t count = 1; count <= all.size(1) - first; ++count)
        EXPECT_TRUE(testing::close(unfold_3x3_rows(map, stride, first, count), all.narrow(1, first, count), 0));
    }
  }
  for (const auto& [first, count] : {std::array<int64_t, 2>{-1, 1}, {0, 0}, {5, 1}, {3, 3}})
    EXPECT_THROW(unfold_3x3_rows(map, 1, first, count), Error) << first << ", " << count;
}

// A linear layer behind unfold_3x3 whose weights of other channels are 0.
TEST(DepthwiseConvolution, IsAConvolutionOfEachChannel) {
  const Tensor map = Tensor::randn({2, 5, 4, 3}, 1), weight = Tensor::randn({3, 3, 3}, 2), bias = Tensor::randn({3}, 3);
  Tensor dense = Tensor::zeros({3, 27});
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t tap = 0; tap < 9; ++tap) dense.data<float>()[c * 27 + c * 9 + tap] = weight.data<float>()[c * 9 + tap];
  }
  for (const int64_t stride : {1, 2}) {
    const Tensor want = linear(unfold_3x3(map, stride), dense, bias);
    EXPECT_TRUE(testing::close(depthwise_conv_3x3(map, weight, bias, stride), want, 1e-5));
  }
  const std::string message = testing::error_of([&] { depthwise_conv_3x3(map, Tensor::zeros({2, 3, 3}), bias); });
  EXPECT_TRUE(testing::contains(message, "a weight [3, 3, 3] and a bias [3]")) << message;
}

TEST(PixelShuffle, SpreadsChannelsOverCells) {
  const Tensor got = pixel_shuffle(counting({1, 1, 1, 8}), 2);
  EXPECT_TRUE(testing::close(got, Tensor::from<float>({1, 2, 2, 2}, {1, 5, 2, 6, 3, 7, 4, 8}), 0));
  testing::error_of([] { pixel_shuffle(counting({1, 1, 1, 6}), 2); });
}

// torch.nn.functional.interpolate(x, (3, 5), mode="bilinear", align_corners=False)
TEST(ResizeBilinear, HasHalfPixelCentres) {
  const Tensor got = resize_bilinear(counting({2, 2}), 3, 5);
  EXPECT_TRUE(testing::close(
      got, Tensor::from<float>({3, 5}, {1, 1.1f, 1.5f, 1.9f, 2, 2, 2.1f, 2.5f, 2.9f, 3, 3, 3.1f, 3.5f, 3.9f, 4}),
      1e-6));
  testing::error_of([] { resize_bilinear(counting({2, 2}), 0, 5); });
}

// torch.nn.functional.interpolate(x, (3, 5), mode="bilinear", align_corners=True)
TEST(ResizeMap, AlignedCornersKeepTheirValues) {
  const Tensor got = resize_map(counting({1, 2, 2, 1}), 3, 5, Corners::aligned).view({3, 5});
  EXPECT_TRUE(testing::close(
      got, Tensor::from<float>({3, 5}, {1, 1.25f, 1.5f, 1.75f, 2, 2, 2.25f, 2.5f, 2.75f, 3, 3, 3.25f, 3.5f, 3.75f, 4}),
      1e-6));
  const Tensor one = resize_map(counting({1, 2, 2, 1}), 1, 1, Corners::aligned);
  EXPECT_EQ(one.item<float>(), 1) << "a map of one cell has the first one's value";
}

TEST(ResizeMap, ResizesEachChannelAsAPlane) {
  const Tensor x = Tensor::randn({2, 3, 4, 5}, 1), planes = contiguous(x.permute({0, 3, 1, 2}));
  for (const auto& [height, width] : {std::array<int64_t, 2>{7, 9}, {2, 3}, {3, 4}}) {
    const Tensor want = contiguous(resize_bilinear(planes, height, width).permute({0, 2, 3, 1}));
    EXPECT_TRUE(testing::close(resize_map(x, height, width), want, 0)) << height << "×" << width;
  }
  testing::error_of([] { resize_map(counting({2, 2}), 3, 5); });
}

TEST(RelativeSelfAttention, InFloatEqualsTheFormulaInDouble) {
  for (const auto& [rows, columns, dim] : {std::array<int64_t, 3>{3, 5, 7}, {14, 14, 14}, {1, 1, 4}, {17, 33, 16}}) {
    const Tensor qkv = Tensor::randn({2, rows * columns, 3 * 2 * dim}, 1, DType::f64);
    const Tensor down = Tensor::randn({2 * rows - 1, dim}, 2, DType::f64);
    const Tensor across = Tensor::randn({2 * columns - 1, dim}, 3, DType::f64);
    const Tensor exact = relative_self_attention(qkv, 2, 0.3, down, across, {rows, columns});
    const Tensor single = relative_self_attention(qkv.to(DType::f32), 2, 0.3, down.to(DType::f32),
                                                  across.to(DType::f32), {rows, columns});
    // A score sums 3·dim products of size 1, a softmax multiplies its error by at most the values' size, 4.
    EXPECT_TRUE(testing::close(single, exact, 4 * 3 * static_cast<double>(dim) * 6e-8)) << rows << "×" << columns;
  }
}

TEST(RelativeSelfAttention, RefusesTablesOfAnotherGrid) {
  const Tensor qkv = Tensor::randn({1, 6, 12}, 1), table = Tensor::randn({5, 4}, 2);
  EXPECT_NE(testing::error_of([&] {
              relative_self_attention(qkv, 1, 1, table, table, {3, 2});
            }).find("[3, 4]"),
            std::string::npos);
  testing::error_of([&] { relative_self_attention(qkv, 1, 1, table, table, {3, 3}); });
}

// A compiled program gives the bits of the eager operations.
TEST(MapOperations, CompiledEqualEager) {
  const Tensor rows = Tensor::randn({3, 4}, 1), columns = Tensor::randn({3, 4}, 2), fill = Tensor::randn({24}, 3);
  const auto function = [&](const Tensor& x) {  // [1, 3, 3, 24]
    const Tensor windows = window_partition(x, 2, fill);
    const Tensor attended = relative_self_attention(windows, 2, 0.5, rows, columns, {2, 2});  // [4, 4, 8]
    const Tensor map = window_unpartition(attended, 2, 3, 3);
    const Tensor large = pixel_shuffle(unfold_3x3(map), 2);  // [1, 6, 6, 18]
    const Tensor flat = large.view({1, 36, 18});
    return resize_bilinear(matmul(flat, flat.transpose(1, 2)), 20, 30);
  };
  RandomParams random(1);
  nn::Linear unused(1, 1, false, ParamSource(random));
  const infer::FunctionSession session(unused, [&](const infer::NamedTensors& in) -> infer::NamedTensors {
    return {{"out", function(in[0].tensor)}};
  });
  const Tensor x = Tensor::randn({1, 3, 3, 24}, 4);
  EXPECT_TRUE(testing::close(session.run({{"x", x}})[0].tensor, function(x), 1e-5));
}

// Windows of every size against the definition, and back.
TEST(WindowPartition, HasTheCellsOfEachWindowInItsRows) {
  for (const auto& [height, width] : {std::array<int64_t, 2>{1, 1}, {3, 5}, {4, 6}, {7, 2}}) {
    const Tensor map = counting({2, height, width, 3}), fill = Tensor::from<float>({3}, {-1, -2, -3});
    for (const int64_t window : {1, 2, 3, 8}) {
      const int64_t down = (height + window - 1) / window, across = (width + window - 1) / window;
      const Tensor windows = window_partition(map, window, fill);
      ASSERT_EQ(windows.shape(), (Shape{2 * down * across, window * window, 3}));
      for (int64_t i = 0; i < windows.numel(); ++i) {
        const int64_t c = i % 3, cell = i / 3 % (window * window), n = i / 3 / (window * window);
        const int64_t y = n / across % down * window + cell / window, x = n % across * window + cell % window;
        const bool inside = y < height && x < width;
        const int64_t at = ((n / across / down * height + y) * width + x) * 3 + c;
        ASSERT_EQ(windows.data<float>()[i], inside ? map.data<float>()[at] : fill.data<float>()[c]) << i;
      }
      ASSERT_TRUE(testing::close(window_unpartition(windows, window, height, width), map, 0));
    }
  }
  EXPECT_THROW(window_partition(counting({1, 2, 2, 1}), 0), Error);
  EXPECT_THROW(window_unpartition(counting({1, 4, 1}), 2, 0, 2), Error);
}

TEST(PixelShuffle, HasAChannelForEachCell) {
  const Tensor x = counting({2, 2, 3, 18});
  const Tensor got = pixel_shuffle(x, 3);
  ASSERT_EQ(got.shape(), (Shape{2, 6, 9, 2}));
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int64_t c = i % 2, column = i / 2 % 9, row = i / 18 % 6, b = i / 108;
    const int64_t cell = (b * 2 + row / 3) * 3 + column / 3, channel = c * 9 + row % 3 * 3 + column % 3;
    ASSERT_EQ(got.data<float>()[i], x.data<float>()[cell * 18 + channel]) << i;
  }
  EXPECT_TRUE(testing::close(pixel_shuffle(x, 1), x, 0));
  EXPECT_THROW(pixel_shuffle(x, 0), Error);
}

// The weights of half-pixel centres, clamped at the edges, along both axes.
TEST(ResizeBilinear, IsTheWeightedMeanOfFourValues) {
  for (const auto& sizes : {std::array<int64_t, 2>{1, 4}, {4, 1}, {5, 5}, {3, 8}, {8, 3}, {2, 100}}) {
    const int64_t from = sizes[0], to = sizes[1];
    const Tensor x = Tensor::randn({2, from, from + 1}, 1, DType::f64), got = resize_bilinear(x, to, to + 2);
    const auto places = [](int64_t index, int64_t old, int64_t size) {
      const double at =
          std::clamp((static_cast<double>(index) + 0.5) * static_cast<double>(old) / static_cast<double>(size) - 0.5,
                     0.0, static_cast<double>(old - 1));
      const auto low = static_cast<int64_t>(at);
      return std::tuple(low, std::min(low + 1, old - 1), at - static_cast<double>(low));
    };
    for (int64_t i = 0; i < got.numel(); ++i) {
      const int64_t column = i % (to + 2), row = i / (to + 2) % to, plane = i / (to + 2) / to;
      const auto [top, below, down] = places(row, from, to);
      const auto [left, right, across] = places(column, from + 1, to + 2);
      const auto at = [&](int64_t y, int64_t u) { return x.data<double>()[(plane * from + y) * (from + 1) + u]; };
      const double want = (1 - down) * ((1 - across) * at(top, left) + across * at(top, right)) +
                          down * ((1 - across) * at(below, left) + across * at(below, right));
      ASSERT_NEAR(got.data<double>()[i], want, 1e-12) << from << " to " << to << ", " << i;
    }
  }
  EXPECT_THROW(resize_bilinear(counting({3}), 2, 2), Error);
  EXPECT_THROW(resize_bilinear(Tensor::zeros({0, 3}), 2, 2), Error);
}

}  // namespace
}  // namespace vitrail::ops
