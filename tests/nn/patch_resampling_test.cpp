// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/patch_resampling.h"

#include <array>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/positional_encoding.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

TEST(PatchResampling, EqualsTimms) {
  const auto golden = testing::read_golden(testing::fixture("nn/patch_resampling.safetensors"));
  for (const auto& [name, expected] : golden.tensors) {
    if (name == "weight") continue;
    const Tensor got = resample_patch_weight(golden["weight"], {expected.size(2), expected.size(3)});
    double largest = 0;
    for (int64_t i = 0; i < expected.numel(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(expected.data<float>()[i])));
    // timm computes the pseudo-inverse in float32, of matrices with a condition number below 30.
    EXPECT_TRUE(testing::close(got, expected, 30 * 16 * 6e-8 * largest)) << name;
  }
}

// Bicubic resizing keeps constant patches, so their inner product with the weights must not change.
TEST(PatchResampling, KeepsInnerProductsIfPatchesGrow) {
  const Tensor weight = Tensor::randn({2, 3, 4, 4}, 7, DType::f64), grown = resample_patch_weight(weight, {8, 8});
  for (int64_t plane = 0; plane < 6; ++plane) {
    double before = 0, after = 0;
    for (int64_t i = 0; i < 16; ++i) before += weight.data<double>()[plane * 16 + i];
    for (int64_t i = 0; i < 64; ++i) after += grown.data<double>()[plane * 64 + i];
    EXPECT_NEAR(before, after, 1e-12);
  }
}

TEST(PatchResampling, KeepsTheWeightForItsOwnSizeAndRejectsBadShapes) {
  const Tensor weight = Tensor::randn({2, 3, 4, 4}, 7);
  EXPECT_EQ(resample_patch_weight(weight, {4, 4}).storage(), weight.storage());
  for (const std::array<int64_t, 2> size : {std::array<int64_t, 2>{0, 4}, {4, 0}, {-1, 4}, {4, -4}}) {
    const std::string message = testing::error_of([&] { resample_patch_weight(weight, size); });
    EXPECT_TRUE(testing::contains(message, "patches of at least 1×1")) << message;
  }
  EXPECT_THROW(resample_patch_weight(weight.select(0, 0), {4, 4}), Error);
}

// The matrix [to, from] that resamples a grid with one channel, by unit vectors.
std::vector<double> resize_matrix(std::array<int64_t, 2> from, std::array<int64_t, 2> to) {
  const int64_t old = from[0] * from[1], count = to[0] * to[1];
  std::vector<double> matrix(static_cast<size_t>(count * old));
  for (int64_t i = 0; i < old; ++i) {
    Tensor unit = Tensor::zeros({1, old, 1}, DType::f64);
    unit.data<double>()[i] = 1;
    const Tensor column = resample_positions(unit, 0, from, to, {}).contiguous();
    for (int64_t r = 0; r < count; ++r) matrix[static_cast<size_t>(r * old + i)] = column.data<double>()[r];
  }
  return matrix;
}

// w' minimises |Bᵀ w' − w|: B (Bᵀ w' − w) = 0.  For patches that grow Bᵀ w' = w.
TEST(PatchResampling, SolvesTheLeastSquaresProblemOfEachPlane) {
  for (const auto& [from, to] : {std::pair<std::array<int64_t, 2>, std::array<int64_t, 2>>{{2, 3}, {5, 4}},
                                 {{5, 4}, {3, 2}},
                                 {{3, 5}, {3, 2}},
                                 {{4, 2}, {3, 5}}}) {
    const std::vector<double> b = resize_matrix(from, to);
    const int64_t old = from[0] * from[1], count = to[0] * to[1];
    const Tensor weight = Tensor::randn({2, 3, from[0], from[1]}, 1, DType::f64);
    const Tensor got = resample_patch_weight(weight, to);
    ASSERT_EQ(got.shape(), (Shape{2, 3, to[0], to[1]}));
    ASSERT_EQ(got.dtype(), DType::f64);
    for (int64_t plane = 0; plane < 6; ++plane) {
      std::vector<double> residual(static_cast<size_t>(old));
      for (int64_t i = 0; i < old; ++i) {
        residual[static_cast<size_t>(i)] = -weight.data<double>()[plane * old + i];
        for (int64_t r = 0; r < count; ++r)
          residual[static_cast<size_t>(i)] +=
              b[static_cast<size_t>(r * old + i)] * got.data<double>()[plane * count + r];
      }
      for (int64_t r = 0; r < count; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < old; ++i) sum += b[static_cast<size_t>(r * old + i)] * residual[static_cast<size_t>(i)];
        EXPECT_NEAR(sum, 0, 1e-9) << plane;
      }
      if (from[0] <= to[0] && from[1] <= to[1]) {
        for (const double value : residual) EXPECT_NEAR(value, 0, 1e-9);
      }
    }
  }
  EXPECT_EQ(resample_patch_weight(Tensor::zeros({1, 1, 2, 3}, DType::bf16), {4, 4}).dtype(), DType::bf16);
  EXPECT_ERROR(error_of([] {
                 resample_patch_weight(Tensor::zeros({3, 4, 4}), {2, 2});
               }),
               "patch embedding", "[3, 4, 4]");
  EXPECT_ERROR(error_of([] { resample_patch_weight(Tensor::zeros({1, 1, 4, 4}), {2, 0}); }), "patch embedding", "2×0");
}

}  // namespace
}  // namespace vitrail::nn
