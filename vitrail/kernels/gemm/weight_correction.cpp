// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/weight_correction_internal.h"

#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"

namespace vitrail::kernels {
namespace {

constexpr int64_t kMaxChunksPerGroup = 8;  // so that several threads can work on one group

size_t bytes_of_floats(int64_t count) { return static_cast<size_t>(round_up(count, 16)) * sizeof(float); }

float* floats_at(std::byte* memory, size_t offset) { return reinterpret_cast<float*>(memory + offset); }

}  // namespace

WeightCorrectionPass::WeightCorrectionPass(const LinearRows& rows) : error_(rows.correction.error) {
  if (!enabled()) return;
  const WeightCorrection& correction = rows.correction;
  in_ = error_->in_features();
  groups_ = rows.count / correction.group_rows;
  chunks_per_group_ = std::min(kMaxChunksPerGroup, correction.group_rows);
  layout_ = {.ld = round_up(error_->out_features(), 64),
             .group_rows = correction.group_rows,
             .individual_rows = std::min(correction.individual_rows, correction.group_rows)};
  num_biases_ = groups_ * layout_.biases_per_group();
  inputs_at_ = bytes_of_floats(num_chunks() * in_);
  biases_at_ = inputs_at_ + bytes_of_floats(num_biases_ * in_);
  gemm_scratch_at_ = biases_at_ + bytes_of_floats(num_biases_ * layout_.ld);
  scratch_bytes_ = gemm_scratch_at_ + error_->scratch_bytes({.count = num_biases_});
}

WeightCorrectionPass::RowRange WeightCorrectionPass::chunk(int64_t index) const {
  const int64_t first = index / chunks_per_group_ * layout_.group_rows, part = index % chunks_per_group_;
  return {first + layout_.group_rows * part / chunks_per_group_,
          first + layout_.group_rows * (part + 1) / chunks_per_group_};
}

void WeightCorrectionPass::accumulate(const MatrixView<const float>& x, int64_t index, RowRange rows,
                                      std::byte* scratch) const {
  float* const sum = floats_at(scratch, 0) + index * in_;
  if (rows.first == chunk(index).first) std::fill_n(sum, in_, 0.0f);
  const int64_t group = index / chunks_per_group_ * layout_.group_rows,
                first = std::max(rows.first, group + layout_.individual_rows);
  if (first < rows.last) add_rows(x.data + first * x.ld, x.ld, rows.last - first, in_, sum);
}

RowBias WeightCorrectionPass::row_biases(const MatrixView<const float>& x, std::byte* scratch) const {
  if (!enabled()) return {};
  const int64_t grain = 1 + 16384 / (chunks_per_group_ * in_ + 1);
  parallel_for(0, groups_, grain, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group) write_inputs(x, group, scratch);
  });
  RowBias biases = layout_;
  biases.data = floats_at(scratch, biases_at_);
  error_->run({floats_at(scratch, inputs_at_), in_}, {floats_at(scratch, biases_at_), biases.ld},
              {.count = num_biases_}, {}, scratch + gemm_scratch_at_);
  return biases;
}

// The rows of one group that are multiplied by E.
void WeightCorrectionPass::write_inputs(const MatrixView<const float>& x, int64_t group, std::byte* scratch) const {
  const int64_t first = group * layout_.group_rows, individual = layout_.individual_rows;
  float* const inputs = floats_at(scratch, inputs_at_) + group * layout_.biases_per_group() * in_;
  for (int64_t r = 0; r < individual; ++r) std::copy_n(x.data + (first + r) * x.ld, in_, inputs + r * in_);
  if (!layout_.has_shared_bias()) return;
  const auto others = static_cast<float>(layout_.group_rows - individual);
  sum_of_rows(floats_at(scratch, 0) + group * chunks_per_group_ * in_, in_, chunks_per_group_, in_, 1 / others,
              inputs + individual * in_);
}

}  // namespace vitrail::kernels
