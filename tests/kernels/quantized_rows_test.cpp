// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/int16_quantization_internal.h"
#include "vitrail/kernels/gemm/quantized_gemm_internal.h"
#include "vitrail/kernels/gemm/quantized_rows_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace vitrail::kernels {
namespace {

// Against a list of the rows.
TEST(TwoTermRows, AreEveryRowOfTheirStrideFromTheFirst) {
  for (const int64_t stride : {0, 1, 2, 5, 100}) {
    for (int64_t first = 0; first < 7; ++first) {
      const TwoTermRows rows{first, stride};
      std::set<int64_t> list;
      for (int64_t row = first; stride > 0 && row < 40; row += stride) list.insert(row);
      for (int64_t row = 0; row < 40; ++row) {
        ASSERT_EQ(contains(rows, row), list.contains(row)) << first << " + n · " << stride << ", row " << row;
        const int64_t before = std::distance(list.begin(), list.lower_bound(row));
        ASSERT_EQ(count_before(rows, row), before) << first << " + n · " << stride << ", row " << row;
        for (int64_t later = row; later < 40; ++later)
          ASSERT_EQ(contains(starting_at(rows, row), later - row), list.contains(later)) << row << " " << later;
      }
    }
  }
}

// Every row and every low term has a slot of its own, and none is left out.
TEST(QuantizedRows, HaveOneSlotForEachTerm) {
  for (const int64_t count : {1, 2, 11, 12, 13, 96, 197, 400}) {
    for (const int64_t stride : {0, 1, 3, 50, 197}) {
      const RowBlocking blocking{};
      const QuantizedRows rows(count, {0, stride}, blocking);
      std::set<int64_t> slots;
      for (int64_t row = 0; row < count; ++row) {
        EXPECT_TRUE(slots.insert(rows.slot(row)).second) << row;
        EXPECT_EQ(rows.has_low_term(row), stride > 0 && row % stride == 0);
        if (rows.has_low_term(row)) {
          EXPECT_TRUE(slots.insert(rows.low_term_slot(row)).second) << row;
        }
      }
      ASSERT_EQ(static_cast<int64_t>(slots.size()), rows.num_slots()) << count << ", " << stride;
      EXPECT_EQ(*slots.begin(), 0);
      EXPECT_EQ(*slots.rbegin(), rows.num_slots() - 1);
      const int64_t block = rows.block_rows();
      for (int64_t row = 0; row < count; row += block) {
        const int64_t in_block = std::min(block, count - row);
        EXPECT_LE(in_block + count_before(rows.two_term_from(row), in_block), blocking.max) << "rows and low terms";
        for (int64_t r = 1; r < in_block; ++r) EXPECT_EQ(rows.slot(row + r), rows.slot(row) + r) << "adjacent";
      }
    }
  }
}

TEST(QuantizedRows, MetadataPrecedesAlignedRows) {
  EXPECT_EQ(kMetadataGroups, 2);
  EXPECT_EQ(first_quantized_row(1), 2);
  EXPECT_EQ(first_quantized_row(16), 16);
  EXPECT_EQ(quantized_row_stride(10, 1), 12);
  EXPECT_EQ(quantized_row_stride(14, 16), 16);
  EXPECT_EQ(quantized_row_stride(15, 16), 32);
  std::vector<int32_t> row(6, 7);
  store_metadata(row.data() + 3, {0.25F, -9});
  EXPECT_EQ(row[0], 7);
  EXPECT_EQ(row[3], 7);
  EXPECT_EQ(load_metadata(row.data() + 3).scale, 0.25F);
  EXPECT_EQ(load_metadata(row.data() + 3).zero_point, -9);
}

// Three blocks of rows, whose two-term rows are 1, 5, 9, …: after each block's rows come its low terms.
TEST(QuantizedRows, LowTermsFollowTheRowsOfTheirBlock) {
  const QuantizedRows rows(14, {.first = 1, .stride = 4}, {.max = 9, .few = 9, .tile = 6});
  ASSERT_EQ(rows.block_rows(), 6);
  EXPECT_EQ(rows.num_slots(), 18);
  EXPECT_EQ(rows.slot(5), 5);
  EXPECT_EQ(rows.low_term_slot(1), 6);
  EXPECT_EQ(rows.low_term_slot(5), 7);
  EXPECT_EQ(rows.slot(6), 8);
  EXPECT_EQ(rows.low_term_slot(9), 14);
  EXPECT_EQ(rows.slot(12), 15);
  EXPECT_EQ(rows.low_term_slot(13), 17) << "the last block has two rows";
}

TEST(ActivationQuantization, ARowHasTheScaleAndTheZeroPointOfItsRange) {
  struct Case {
    float min, max, scale;
    int32_t zero_point;
    float inverse_scale;
  };
  for (const auto& [min, max, scale, zero_point, inverse] :
       {Case{0, 0, 0, 0, 0}, Case{-1, 1, 2 / 255.0F, 128, 127.5F}, Case{-1, 3, 4 / 255.0F, 64, 63.75F},
        Case{0, 51, 0.2F, 0, 5}, Case{-51, 0, 0.2F, 255, 5}, Case{-3, 1, 4 / 255.0F, 191, 63.75F}}) {
    const RowQuantizer quantizer = row_quantizer(min, max);
    EXPECT_FLOAT_EQ(quantizer.params.scale, scale) << min << " " << max;
    EXPECT_EQ(quantizer.params.zero_point, zero_point) << min << " " << max;
    EXPECT_FLOAT_EQ(quantizer.inverse_scale, inverse) << min << " " << max;
  }
  // A range whose scale has no finite inverse counts as zeros.
  for (const float tiny : {1e-45F, 7e-37F, std::nextafter(255 * kMinScale, 0.0F)}) {
    const RowQuantizer zeros = row_quantizer(-tiny, 0);
    EXPECT_EQ(zeros.params.scale, 0) << tiny;
    EXPECT_EQ(zeros.params.zero_point, 0) << tiny;
    EXPECT_EQ(zeros.inverse_scale, 0) << tiny;
  }
  const RowQuantizer smallest = row_quantizer(0, 255 * kMinScale);
  EXPECT_EQ(smallest.params.scale, kMinScale);
  EXPECT_TRUE(std::isfinite(1 / smallest.params.scale));
  const RowQuantizer bad = row_quantizer(0, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(bad.params.scale));
  EXPECT_EQ(bad.inverse_scale, 0);
}

// At the scale ½ and the zero point 3, the value 6 stands for 1.5.
TEST(ActivationQuantization, TheLowTermIsTheErrorInSteps254TimesFiner) {
  const LowTermQuantizer quantizer = low_term_quantizer({0.5F, 3});
  EXPECT_EQ(quantizer.params.scale, 0.5F / 254);
  EXPECT_EQ(quantizer.params.zero_point, 127);
  EXPECT_EQ(quantizer.inverse_high_scale, 2);
  const auto low = [&](float x) { return int{low_term_value(x, 6, quantizer)}; };
  EXPECT_EQ(low(1.5F), 127);
  EXPECT_EQ(low(1.6F), 127 + 51);
  EXPECT_EQ(low(1.25F), 0);
  EXPECT_EQ(low(1.75F), 254);
  EXPECT_EQ(low(10), 255);
  EXPECT_EQ(low(-10), 0);
  EXPECT_EQ(low(std::numeric_limits<float>::quiet_NaN()), 255);
  EXPECT_EQ(low_term_quantizer({0, 0}).inverse_high_scale, 0);
}

TEST(Int16Quantization, RoundedRowsOfTheLargestNormFitTheRange) {
  EXPECT_EQ(max_int16_norm(0), 32767);
  EXPECT_EQ(max_int16_norm(1), 32766.5F);
  EXPECT_EQ(max_int16_norm(16), 32765);
  EXPECT_EQ(max_int16_norm(10'000), 32717);
}

TEST(QuantizedFormat, CountsCompleteGroupsAndNamesItsArithmetic) {
  QuantizedFormat format{.values_per_group = 4, .panel = {8, 2}, .microkernel = nullptr, .quantize_row = nullptr};
  EXPECT_EQ(format.k_groups(1), 2);
  EXPECT_EQ(format.k_groups(8), 2);
  EXPECT_EQ(format.k_groups(9), 4);
  format.panel.interleaved_groups = 1;
  EXPECT_EQ(format.k_groups(1), 1);
  EXPECT_EQ(format.k_groups(4), 1);
  EXPECT_EQ(format.k_groups(5), 2);
  EXPECT_EQ(format.arithmetic(), Arithmetic::int16);
  format.float_accumulators = true;
  EXPECT_EQ(format.arithmetic(), Arithmetic::bf16);
  EXPECT_FALSE(format.is_int8());
  format.quantize_low_term = [](const float*, int64_t, QuantizationParams p, const int32_t*, int32_t*) { return p; };
  EXPECT_EQ(format.arithmetic(), Arithmetic::int8);
  EXPECT_TRUE(format.is_int8());
}

// Rows are copied, or quantised by the function that is given.
TEST(Int8WeightSource, GivesValuesAndScalesRowByRow) {
  const auto quantize = [](const float* row, int64_t in, int8_t* values) {
    for (int64_t i = 0; i < in; ++i) values[i] = static_cast<int8_t>(2 * row[i]);
    return 0.5F;
  };
  const std::vector<float> weight{1, 2, 3, 4}, scales{10, 20};
  const std::vector<int8_t> given{5, 6, 7, 8};
  std::vector<int8_t> values(2);
  EXPECT_EQ(Int8WeightSource(weight.data()).row(1, 2, quantize, values.data()), 0.5F);
  EXPECT_EQ(values, (std::vector<int8_t>{6, 8}));
  EXPECT_EQ(Int8WeightSource(given.data(), scales.data()).row(1, 2, quantize, values.data()), 20);
  EXPECT_EQ(values, (std::vector<int8_t>{7, 8}));
}

TEST(AttentionPacking, HasRoomForARowAndForTheGroupsOfAPanelOfRows) {
  EXPECT_EQ(packing_floats(64), 64 + 32 * 32);
  EXPECT_EQ(packing_floats(7), 7 + 32 * 4);
}

}  // namespace
}  // namespace vitrail::kernels
