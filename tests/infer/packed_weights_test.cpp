// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/packed_weights_internal.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/golden.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/linear.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::infer {
namespace {

constexpr int64_t kPackedOut = 5, kPackedIn = 48, kRows = 7;

// Row 0 has the full range, row 1 a common factor, row 2 small values, row 3 zeros only, row 4 the value −128.
QuantizedTensor quantized_weight() {
  const Tensor values = Tensor::zeros({kPackedOut, kPackedIn}, DType::i8), scales = Tensor::empty({kPackedOut});
  int8_t* const v = values.data<int8_t>();
  for (int64_t c = 0; c < kPackedIn; ++c) {
    v[0 * kPackedIn + c] = static_cast<int8_t>(c == 0 ? 127 : c * 29 % 63 - 31);
    v[1 * kPackedIn + c] = static_cast<int8_t>(3 * (c * 7 % 21 - 10));
    v[2 * kPackedIn + c] = static_cast<int8_t>(c * 5 % 7 - 3);
    v[4 * kPackedIn + c] = static_cast<int8_t>(c == 9 ? -128 : c % 5 - 2);
  }
  for (int64_t r = 0; r < kPackedOut; ++r) scales.data<float>()[r] = 0.013F / static_cast<float>(3 * r + 7);
  return {values, scales};
}

Tensor multiplied(const Tensor& packed_weight) {
  PackedWeights weights(kernels::Precision::int8);
  const auto packed = weights.get(packed_weight, Tensor());
  const Tensor x = Tensor::randn({kRows, kPackedIn}, 1), y = Tensor::empty({kRows, kPackedOut});
  const kernels::LinearRows rows{.count = kRows};
  const auto scratch = Storage::allocate(packed.weight->scratch_bytes(rows) + 1);
  packed.weight->run({x.data<float>(), kPackedIn}, {y.data<float>(), kPackedOut}, rows, {}, scratch->data());
  return y;
}

// So an int8 file gives the same logits whether it is kept or dequantised and quantised again.
TEST(PackedWeights, AQuantizedWeightGivesTheBitsOfItsDequantizedCopy) {
  const Tensor kept = multiplied(Tensor::from_quantized(quantized_weight())),
               dense = multiplied(dequantize(quantized_weight()));
  EXPECT_EQ(std::memcmp(kept.data<float>(), dense.data<float>(), sizeof(float) * kept.numel()), 0)
      << "first values " << kept.data<float>()[0] << " and " << dense.data<float>()[0];
  for (int64_t r = 0; r < kRows; ++r) EXPECT_EQ(kept.data<float>()[r * kPackedOut + 3], 0);
}

Tensor run(const PackedWeights::Packed& packed, const Tensor& x, int64_t out) {
  const Tensor y = Tensor::empty({x.size(0), out});
  const kernels::LinearRows rows{.count = x.size(0)};
  const auto scratch = Storage::allocate(packed.weight->scratch_bytes(rows) + 1);
  packed.weight->run({x.data<float>(), x.size(1)}, {y.data<float>(), out}, rows, {}, scratch->data());
  return y;
}

// Rows of one weight, such as the queries of a fused projection, are packed by themselves.
TEST(PackedWeights, PartsOfAWeightAreDistinguishedByTheirPlaceAndShape) {
  const Tensor whole = Tensor::randn({12, 8}, 1), copy = whole.clone(), bias = Tensor::randn({4}, 2);
  const Tensor x = Tensor::randn({5, 8}, 3);
  PackedWeights weights;
  weights.retain(whole);
  for (int round = 0; round < 2; ++round) {
    for (const int64_t first : {0, 4, 8}) {
      const Tensor want = ops::linear(x, copy.narrow(0, first, 4), bias);
      EXPECT_TRUE(testing::close(run(weights.get(whole.narrow(0, first, 4), bias), x, 4), want, 1e-5)) << first;
    }
    const Tensor want = ops::linear(x, copy.narrow(0, 0, 8), {});
    EXPECT_TRUE(testing::close(run(weights.get(whole.narrow(0, 0, 8), {}), x, 8), want, 1e-5));
  }
  EXPECT_FALSE(whole.is_meta()) << "it is retained";
}

TEST(PackedWeights, PackOnceAndReleaseTheWeight) {
  PackedWeights weights;
  EXPECT_EQ(weights.bytes(), 0u);
  const Tensor weight = Tensor::randn({12, 8}, 1);
  const auto first = weights.get(weight, {});
  EXPECT_TRUE(weight.is_meta());
  const size_t bytes = weights.bytes();
  EXPECT_EQ(bytes, first.weight->packed_bytes());
  EXPECT_EQ(weights.get(weight, {}).weight, first.weight);
  EXPECT_EQ(weights.bytes(), bytes);
}

TEST(PackedWeights, ExceptionsHaveTheirOwnPrecision) {
  const Tensor a = Tensor::randn({12, 8}, 1), b = Tensor::randn({12, 8}, 2), c = Tensor::randn({12, 8}, 3);
  PackedWeights weights(kernels::Precision::int8, {{a.storage().get(), kernels::Precision::fp32}}, {b.storage().get()});
  EXPECT_EQ(weights.get(a, {}).weight->arithmetic(), kernels::Arithmetic::fp32);
  EXPECT_EQ(weights.get(b, {}).weight->arithmetic(), kernels::Arithmetic::int8);
  EXPECT_EQ(weights.get(c, {}).weight->arithmetic(), kernels::Arithmetic::int8);
  EXPECT_TRUE(a.is_meta());
  EXPECT_FALSE(b.is_meta());
  EXPECT_TRUE(c.is_meta());
}

// The first 36 inputs are filters of 3×3 cells with 4 channels.
TEST(PackedWeights, AConvolutionOfAFileInInt8KeepsItsValues) {
  constexpr int64_t kOut = 5, kChannels = 4, kIn = 9 * kChannels;
  const QuantizedTensor file = quantized_weight();
  const QuantizedTensor filters{file.values.narrow(1, 0, kIn).contiguous(), file.scales};
  const Tensor map = Tensor::randn({1, 6, 5, kChannels}, 1);
  const auto convolved = [&](const Tensor& weight) {
    PackedWeights weights(kernels::Precision::int8);
    const auto packed = weights.convolution(weight, {}, 1);
    EXPECT_EQ(packed->arithmetic(), kernels::Arithmetic::int8);
    EXPECT_EQ(weights.convolution(weight, {}, 1), packed) << "packed once";
    EXPECT_EQ(weights.bytes(), packed->packed_bytes());
    EXPECT_TRUE(weight.is_meta());
    const kernels::Neighbourhoods shape{6, 5, kChannels, 1};
    const auto scratch = Storage::allocate(packed->scratch_bytes(shape, 1) + 1);
    const Tensor y = Tensor::empty({1, 6, 5, kOut});
    packed->run(map.data<float>(), shape, 1, {y.data<float>(), kOut}, {}, scratch->data());
    return y;
  };
  const Tensor dense = dequantize(filters), want = ops::linear(ops::unfold_3x3(map), dense.clone(), {});
  const Tensor kept = convolved(Tensor::from_quantized(filters)), again = convolved(dense);
  EXPECT_TRUE(testing::close(kept, want, 2e-2));
  EXPECT_EQ(std::memcmp(kept.data<float>(), again.data<float>(), sizeof(float) * kept.numel()), 0);
}

// A GEMM on NEON adds two values of up to 128 · 128 in 16 bits, which do not hold the sum.
TEST(PackedWeights, ACorrectionMayHaveTheLowestInt8) {
  QuantizedTensor corrected = quantized_weight();
  const QuantizedTensor lowest{Tensor::full({kPackedOut, kPackedIn}, -128, DType::i8),
                               Tensor::full({kPackedOut}, 1e-4)};
  corrected.correction = std::make_shared<const QuantizedTensor>(lowest);
  PackedWeights int8(kernels::Precision::int8);
  const auto packed = int8.get(Tensor::from_quantized(corrected), {});
  const Tensor x = Tensor::randn({kRows, kPackedIn}, 1);
  EXPECT_TRUE(testing::close(run({packed.correction, nullptr}, x, kPackedOut),
                             ops::linear(x, Tensor::full({kPackedOut, kPackedIn}, -128e-4), {}), 2e-2));
}

// The weight, and what it lacks of its original, which the program adds for a few rows.
TEST(PackedWeights, ACorrectionIsPackedBesideAnInt8WeightOnly) {
  const auto corrected = [] {  // packing releases the values
    QuantizedTensor result = quantized_weight();
    result.correction = std::make_shared<const QuantizedTensor>(
        QuantizedTensor{Tensor::full({kPackedOut, kPackedIn}, 3, DType::i8), Tensor::full({kPackedOut}, 1e-4)});
    return result;
  };
  const Tensor bias = Tensor::randn({kPackedOut}, 5), x = Tensor::randn({kRows, kPackedIn}, 1);
  PackedWeights int8(kernels::Precision::int8);
  const auto packed = int8.get(Tensor::from_quantized(corrected()), bias);
  ASSERT_NE(packed.correction, nullptr);
  EXPECT_EQ(int8.bytes(), packed.weight->packed_bytes() + packed.correction->packed_bytes());
  // Both have the bias, because one of them alone is applied to a row's correction.
  EXPECT_TRUE(testing::close(run({packed.correction, nullptr}, x, kPackedOut),
                             ops::linear(x, Tensor::full({kPackedOut, kPackedIn}, 3e-4), bias), 1e-4));
  EXPECT_TRUE(testing::close(run(packed, x, kPackedOut), ops::linear(x, dequantize(quantized_weight()), bias), 2e-2));
  PackedWeights fp32(kernels::Precision::fp32);
  const auto dense = fp32.get(Tensor::from_quantized(corrected()), bias);
  EXPECT_EQ(dense.correction, nullptr);
  EXPECT_EQ(dense.weight->arithmetic(), kernels::Arithmetic::fp32);
  EXPECT_TRUE(testing::close(run(dense, x, kPackedOut), ops::linear(x, dequantize(corrected()), bias), 1e-5))
      << "the correction is a part of the weight";
  PackedWeights plain(kernels::Precision::int8);
  EXPECT_EQ(plain.get(Tensor::from_quantized(quantized_weight()), bias).correction, nullptr);
}

TEST(PackedWeights, TakeWeightsAndBiasesOfAnyTypeAndLayout) {
  const Tensor w = Tensor::randn({6, 8}, 1).to(DType::bf16).to(DType::f32), x = Tensor::randn({3, 8}, 2);
  const Tensor bias = Tensor::randn({6, 2}, 3).to(DType::bf16).to(DType::f32).select(1, 1);
  const Tensor want = ops::linear(x, w, bias.contiguous());
  PackedWeights weights;
  EXPECT_TRUE(testing::close(run(weights.get(w.to(DType::bf16), bias.to(DType::bf16)), x, 6), want, 1e-5));
  EXPECT_TRUE(testing::close(run(weights.get(w.transpose(0, 1).contiguous().transpose(0, 1), bias), x, 6), want, 1e-5));
  EXPECT_TRUE(testing::close(run(weights.get(w.to(DType::f64), {}), x, 6), ops::linear(x, w, {}), 1e-5));
}

// Row by row as quantising the fp32 copy, whatever the common factor of the values.
TEST(PackedWeights, RowsOfACommonFactorHaveTheBitsOfTheirDequantizedCopy) {
  for (const int factor : {1, 2, 3, 5, 20, 63}) {
    for (const int sign : {1, -1}) {
      const Tensor values = Tensor::zeros({3, 11}, DType::i8), scales = Tensor::from<float>({3}, {0.02F, 0.013F, 3.5F});
      for (int i = 0; i < 33; ++i) values.data<int8_t>()[i] = static_cast<int8_t>(sign * factor * (i * 7 % 5 - 2));
      const QuantizedTensor rows{values, scales};
      const Tensor x = Tensor::randn({4, 11}, 1);
      PackedWeights kept(kernels::Precision::int8), dense(kernels::Precision::int8);
      const Tensor expected = run(dense.get(dequantize(rows), {}), x, 3);  // before packing releases the rows
      EXPECT_TRUE(testing::close(run(kept.get(Tensor::from_quantized(rows), {}), x, 3), expected, 0)) << sign * factor;
    }
  }
}

}  // namespace
}  // namespace vitrail::infer
