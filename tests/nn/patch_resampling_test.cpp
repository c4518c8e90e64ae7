// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/patch_resampling.h"

#include <array>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::nn {
namespace {

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

}  // namespace
}  // namespace vitrail::nn
